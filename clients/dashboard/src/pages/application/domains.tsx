// Custom domains, with the records to set and what the DNS answers.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { CopyButton } from '../../parts/copy';
import { foundText } from '../../parts/dns_instructions';
import { Field, Form, Problem, Submit } from '../../parts/form';
import { Empty, Section, Table, Waiting } from '../../parts/page';
import { Status, StatusReason } from '../../parts/status';
import { Ago } from '../../parts/time';
import { ApplicationFrame, type Shown } from './frame';
import { appFlags } from '../../parts/command';
import { reversalText } from '../../parts/reversal';
import { revertChange } from '../../parts/undo';

const DOMAINS = graphql(`
  query Domains($id: ID!) {
    listApplicationDomains(id: $id, limit: 100) {
      data {
        id
        hostname
        status
        status_reason
        last_checked_at
        certificate {
          status
          error
        }
        dns_instructions {
          purpose
          type
          name
          value
          status
          observed_values
        }
      }
    }
  }
`);
const ADD = graphql(`
  mutation AddDomain($id: ID!, $input: AddDomainInput!) {
    addApplicationDomain(id: $id, input: $input) {
      id
    }
  }
`);
const VERIFY = graphql(`
  mutation VerifyDomain($id: ID!, $domain_id: ID!) {
    verifyApplicationDomain(id: $id, domain_id: $domain_id) {
      id
    }
  }
`);
const REMOVE = graphql(`
  mutation RemoveDomain($id: ID!, $domain_id: ID!) {
    removeApplicationDomain(id: $id, domain_id: $domain_id)
  }
`);

type Domain = ResultOf<typeof DOMAINS>['listApplicationDomains']['data'][number];

export function Domains({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Domains" command={(app) => `svc domains ls${app}`}>
      {(shown) => <List shown={shown} />}
    </ApplicationFrame>
  );
}

function List({ shown }: { shown: Shown }) {
  const { id, default_hostname } = shown.application;
  const { data, error, reload } = useQuery(DOMAINS, { id });
  const list = data?.listApplicationDomains.data;
  // The first check comes by itself, and a certificate after the records.
  useMoving(Boolean(list?.some(isMoving)), reload);
  return (
    <>
      {shown.mayChange && <Add id={id} reload={reload} />}
      {!list && <Waiting error={error} />}
      {list?.length === 0 && (
        <Empty title="No custom domains yet" command={`svc domains add shop.example.com${appFlags(shown.application)}`}>
          The application is reachable at {default_hostname}. Add a name of your own, then set the records that stand
          here.
        </Empty>
      )}
      {list?.map((domain) => (
        <One
          key={domain.id}
          application={shown.application}
          domain={domain}
          mayChange={shown.mayChange}
          reload={reload}
        />
      ))}
    </>
  );
}

const isMoving = ({ status, last_checked_at, certificate }: Domain): boolean =>
  last_checked_at === null || (status === 'active' && certificate.status === 'pending');

function Add({ id, reload }: { id: string; reload(): Promise<void> }) {
  const [hostname, setHostname] = useState('');
  const action = useAction(async () => {
    await request(ADD, { id, input: { hostname: hostname.trim() } });
    setHostname('');
    await reload();
  });
  return (
    <Form action={action} class="inline form-line">
      <Field
        label="Add a domain"
        name="hostname"
        required
        placeholder="shop.example.com"
        value={hostname}
        error={action.error}
        onInput={(event) => setHostname(event.currentTarget.value)}
      />
      <Submit action={action}>Add</Submit>
      <Problem error={action.error} fields={['hostname']} />
    </Form>
  );
}

interface OneProps {
  application: Shown['application'];
  domain: Domain;
  mayChange: boolean;
  reload(): Promise<void>;
}

function One({ application, domain, mayChange, reload }: OneProps) {
  const { id } = application;
  const [asks, setAsks] = useState(false);
  const verify = useAction(async () => {
    await request(VERIFY, { id, domain_id: domain.id });
    await reload();
  });
  const actions = mayChange && (
    <>
      <button
        type="button"
        class="quiet small"
        aria-busy={verify.isRunning ? true : undefined}
        onClick={() => void verify.run()}
      >
        Check now<span class="off-screen"> {domain.hostname}</span>
      </button>
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Remove<span class="off-screen"> {domain.hostname}</span>
      </button>
    </>
  );
  return (
    <Section title={domain.hostname} actions={actions}>
      <p>
        <Status value={domain.status} /> <span class="faint">·</span> certificate{' '}
        <StatusReason value={domain.certificate.status} reason={domain.certificate.error}>
          {domain.last_checked_at ? (
            <>
              checked <Ago time={domain.last_checked_at} />
            </>
          ) : (
            'not checked yet'
          )}
        </StatusReason>
      </p>
      {domain.status_reason && <p class="notice">{domain.status_reason}</p>}
      <Problem error={verify.error} />
      <Records domain={domain} />
      {asks && <Remove {...{ application, domain, reload }} onClose={() => setAsks(false)} />}
    </Section>
  );
}

type RemoveProps = Omit<OneProps, 'mayChange'> & { onClose(): void };

function Remove({ application: { id, project_id }, domain, reload, onClose }: RemoveProps) {
  const remove = async (): Promise<void> => {
    await request(REMOVE, { id, domain_id: domain.id });
    await reload();
  };
  const undo = async (): Promise<void> => {
    await revertChange({ projectId: project_id, resourceId: domain.id, action: 'domain.removed' });
    await reload();
  };
  return (
    <Confirm
      title={`Remove ${domain.hostname}?`}
      verb="Remove"
      work={remove}
      done={`${domain.hostname} was removed.`}
      undo={undo}
      onClose={onClose}
    >
      The application is no longer reachable under this name. {reversalText('activity', project_id)}
    </Confirm>
  );
}

function Records({ domain }: { domain: Domain }) {
  return (
    <Table label={`Records of ${domain.hostname}`} head={['For', 'Type', 'Name', 'Value', 'State']}>
      {domain.dns_instructions.map((record) => (
        <tr key={`${record.purpose} ${record.name} ${record.value}`}>
          <td>{record.purpose.replace('_', ' ')}</td>
          <td>{record.type}</td>
          <td>
            <Cell text={record.name} label={`name of the ${record.purpose} record`} />
          </td>
          <td>
            <Cell text={record.value} label={`value of the ${record.purpose} record`} />
          </td>
          <td>
            <StatusReason value={record.status} reason={reasonOf(record, domain.last_checked_at !== null)} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function reasonOf({ status, observed_values }: Domain['dns_instructions'][number], isChecked: boolean): string | null {
  if (status === 'failed') return foundText(observed_values);
  return status === 'pending' && isChecked ? 'not found' : null;
}

function Cell({ text, label }: { text: string; label: string }) {
  return (
    <span class="with-copy">
      <code>{text}</code> <CopyButton text={text} label={label} />
    </span>
  );
}
