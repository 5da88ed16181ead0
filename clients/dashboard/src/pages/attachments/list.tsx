// The databases of an application, or the applications of a database; attached and detached from either side.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Section, Waiting } from '../../parts/page';
import { AttachDialog, RESTART } from './attach';

const ATTACHMENT_FIELDS = graphql(`
  fragment AttachmentFields on DatabaseAttachment {
    id
    database_id
    application_id
    variables
    application {
      name
      status
    }
    database {
      name
      engine
    }
  }
`);
const OF_APPLICATION = graphql(
  `
    query ApplicationAttachments($id: ID!) {
      listApplicationAttachments(id: $id, limit: 100) {
        data {
          ...AttachmentFields
        }
      }
    }
  `,
  [ATTACHMENT_FIELDS],
);
const OF_DATABASE = graphql(
  `
    query DatabaseAttachments($id: ID!) {
      listDatabaseAttachments(id: $id, limit: 100) {
        data {
          ...AttachmentFields
        }
      }
    }
  `,
  [ATTACHMENT_FIELDS],
);
const DETACH = graphql(`
  mutation Detach($id: ID!, $attachment_id: ID!) {
    deleteDatabaseAttachment(id: $id, attachment_id: $attachment_id)
  }
`);

type Attachment = ResultOf<typeof ATTACHMENT_FIELDS>;

interface SideProps {
  id: string;
  projectId: string;
  mayChange: boolean;
  /** Names of the variables that the application has by itself. */
  taken?: readonly string[];
  /** Called when something was attached or detached. */
  changed?(): Promise<void>;
}

export function DatabasesOfApplication({ id, changed, ...side }: SideProps) {
  const { data, error, reload } = useQuery(OF_APPLICATION, { id });
  const list = data?.listApplicationAttachments.data;
  return (
    <List {...side} {...{ list, error, application: id }} done={async () => (await reload(), await changed?.())} />
  );
}

export function ApplicationsOfDatabase({ id, changed, ...side }: SideProps) {
  const { data, error, reload } = useQuery(OF_DATABASE, { id });
  const list = data?.listDatabaseAttachments.data;
  return <List {...side} {...{ list, error, database: id }} done={async () => (await reload(), await changed?.())} />;
}

interface ListProps extends Pick<SideProps, 'projectId' | 'mayChange' | 'taken'> {
  application?: string;
  database?: string;
  list: readonly Attachment[] | undefined;
  error: ReturnType<typeof useQuery>['error'];
  done(): Promise<void>;
}

function List({ application, database, projectId, mayChange, taken = [], list, error, done }: ListProps) {
  const [asks, setAsks] = useState(false);
  const actions = mayChange && (
    <button type="button" class="quiet" onClick={() => setAsks(true)}>
      {application ? 'Attach a database' : 'Attach to an application'}
    </button>
  );
  return (
    <Section title={application ? 'Databases' : 'Applications'} actions={actions}>
      {!list && <Waiting error={error} rows={2} />}
      {list?.length === 0 && (
        <p class="faint">
          {application
            ? 'No database is attached. An attached one sets its address and password as variables.'
            : 'The database is attached to no application.'}
        </p>
      )}
      {list && list.length > 0 && (
        <ul class="rows attachments" aria-label={application ? 'Attached databases' : 'Applications with the database'}>
          {list.map((one) => (
            <Row key={one.id} attachment={one} isOfApplication={application !== undefined} {...{ mayChange, done }} />
          ))}
        </ul>
      )}
      {asks && <AttachDialog {...{ projectId, application, database, taken, done }} onClose={() => setAsks(false)} />}
    </Section>
  );
}

interface RowProps {
  attachment: Attachment;
  isOfApplication: boolean;
  mayChange: boolean;
  done(): Promise<void>;
}

function Row({ attachment, isOfApplication, mayChange, done }: RowProps) {
  const [asks, setAsks] = useState(false);
  const { database_id, application_id, variables, database, application } = attachment;
  const other = isOfApplication
    ? { href: `/databases/${database_id}`, name: database?.name ?? database_id, what: database?.engine }
    : { href: `/applications/${application_id}`, name: application?.name ?? application_id, what: application?.status };
  return (
    <li class="row">
      <div>
        <a href={other.href}>
          <strong>{other.name}</strong>
        </a>{' '}
        <span class="faint">{other.what}</span>
        <p class="variable-names">
          {variables.map((name) => (
            <code key={name}>{name}</code>
          ))}
        </p>
      </div>
      {mayChange && (
        <button type="button" class="quiet small" onClick={() => setAsks(true)}>
          Detach<span class="off-screen"> {other.name}</span>
        </button>
      )}
      {asks && <Detach attachment={attachment} done={done} onClose={() => setAsks(false)} />}
    </li>
  );
}

interface DetachProps {
  attachment: Attachment;
  done(): Promise<void>;
  onClose(): void;
}

function Detach({ attachment, done, onClose }: DetachProps) {
  const { id, database_id, application_id, application, database, variables } = attachment;
  const isRunning = application?.status === 'running' || application?.status === 'crashed';
  const [restarts, setRestarts] = useState(false);
  const work = async (): Promise<void> => {
    await request(DETACH, { id: database_id, attachment_id: id });
    if (isRunning && restarts) await request(RESTART, { id: application_id });
    await done();
  };
  return (
    <Confirm
      title={`Detach ${database?.name ?? 'the database'} from ${application?.name ?? 'the application'}?`}
      verb="Detach"
      work={work}
      onClose={onClose}
    >
      {variables.join(', ')} are removed. The database and its data stay. What runs keeps the variables until it is
      restarted or deployed.
      {isRunning && (
        <label class="check detach-restart">
          <input
            type="checkbox"
            data-question
            checked={restarts}
            onChange={(event) => setRestarts(event.currentTarget.checked)}
          />
          Restart {application.name} without them now
        </label>
      )}
    </Confirm>
  );
}
