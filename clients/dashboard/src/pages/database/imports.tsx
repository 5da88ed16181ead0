// Imports into a database: a file that is sent, or an address, with what came of it.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { Field, Form, Problem, Submit } from '../../parts/form';
import { Empty, Section, Table, Waiting } from '../../parts/page';
import { StatusReason } from '../../parts/status';
import { Ago, bytesText } from '../../parts/time';
import { sendFile } from '../../source/send';
import { commandName, DatabaseFrame, type ShownDatabase } from './frame';

const IMPORTS = graphql(`
  query DatabaseImports($id: ID!) {
    listDatabaseImports(id: $id, limit: 20) {
      data {
        id
        source_address
        size_bytes
        bytes_read
        tables {
          name
          rows_read
          rows
        }
        not_taken_over {
          kind
          name
          reason
        }
        status
        status_reason
        phase
        lag_seconds
        source_slot
        created_at
      }
    }
  }
`);
const CREATE = graphql(`
  mutation CreateDatabaseImport($id: ID!, $input: CreateDatabaseImportInput!) {
    createDatabaseImport(id: $id, input: $input) {
      id
      upload_url
    }
  }
`);
const CANCEL = graphql(`
  mutation CancelDatabaseImport($id: ID!, $import_id: ID!) {
    cancelDatabaseImport(id: $id, import_id: $import_id) {
      status
    }
  }
`);

const FINISH = graphql(`
  mutation FinishDatabaseImport($id: ID!, $import_id: ID!, $input: FinishDatabaseImportInput!) {
    finishDatabaseImport(id: $id, import_id: $import_id, input: $input) {
      status
    }
  }
`);

type Import = ResultOf<typeof IMPORTS>['listDatabaseImports']['data'][number];

const UNFINISHED = ['awaiting_upload', 'pending', 'running'];
const isUnfinished = ({ status }: Import): boolean => UNFINISHED.includes(status);
const KINDS: Record<string, string> = {
  postgresql:
    'Plain SQL or an archive of pg_dump, or postgresql://user:password@host/name. One transaction: all or nothing.',
  mariadb: 'SQL of mysqldump or mariadb-dump, or mysql://user:password@host/name. The database has to be empty.',
};
const SNAPSHOT = 'An RDB file. The database has to be empty.';

export function Imports({ id }: { id: string }) {
  return (
    <DatabaseFrame id={id} section="Import" command={(database) => `svc db import ${database} FILE`}>
      {(shown) => <List shown={shown} />}
    </DatabaseFrame>
  );
}

function List({ shown }: { shown: ShownDatabase }) {
  const { id } = shown.database;
  const { data, error, reload } = useQuery(IMPORTS, { id });
  const list = data?.listDatabaseImports.data;
  const isBusy = list?.some(isUnfinished) ?? false;
  useMoving(isBusy, reload);
  return (
    <>
      {shown.mayChange && shown.database.status === 'available' && !isBusy && <Begin shown={shown} reload={reload} />}
      <Section title="Imports">
        {!list && <Waiting error={error} />}
        {list?.length === 0 && (
          <Empty title="No imports yet" command={`svc db import ${commandName(shown.database)} FILE`}>
            Data of another server come in here.
          </Empty>
        )}
        {list?.map((one) => (
          <One key={one.id} shown={shown} one={one} reload={reload} />
        ))}
      </Section>
    </>
  );
}

function Begin({ shown: { database }, reload }: { shown: ShownDatabase; reload(): Promise<void> }) {
  const [url, setUrl] = useState('');
  const [file, setFile] = useState<File | null>(null);
  const [follows, setFollows] = useState(false);
  const [progress, setProgress] = useState('');
  const action = useAction(async () => {
    const { id } = database;
    const source = file ? { upload: true } : { url };
    const mode = follows && !file ? 'follow' : 'copy';
    const { createDatabaseImport: made } = await request(CREATE, { id, input: { source, mode } });
    try {
      if (file) await sendFile(made.upload_url, file, setProgress);
      setUrl('');
      setFile(null);
    } catch (error) {
      await request(CANCEL, { id, import_id: made.id }).catch(() => undefined);
      throw error;
    } finally {
      setProgress('');
      await reload();
    }
  });
  return (
    <Form action={action}>
      <p>{KINDS[database.engine] ?? SNAPSHOT} Files may be compressed with gzip.</p>
      <label>
        File <input type="file" onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
      </label>
      {!file && (
        <Field
          label="Or address"
          name="url"
          autocomplete="off"
          placeholder="https://files.example.com/orders.dump"
          value={url}
          error={action.error}
          onInput={(event) => setUrl(event.currentTarget.value)}
        />
      )}
      {!file && url.startsWith('postgres') && (
        <label class="check">
          <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.currentTarget.checked)} />{' '}
          Apply what changes at the source until the import is finished
        </label>
      )}
      <Submit action={action}>Import</Submit>
      {progress && <p role="status">{progress}</p>}
      <Problem error={action.error} fields={['url']} />
    </Form>
  );
}

interface OneProps {
  shown: ShownDatabase;
  one: Import;
  reload(): Promise<void>;
}

function One({ shown, one, reload }: OneProps) {
  const cancel = useAction(async () => {
    await request(CANCEL, { id: shown.database.id, import_id: one.id });
    await reload();
  });
  const finish = useAction(async () => {
    await request(FINISH, { id: shown.database.id, import_id: one.id, input: {} });
    await reload();
  });
  return (
    <article>
      <h3>
        {one.source_address ?? 'Uploaded file'}, <Ago time={one.created_at} />
      </h3>
      <StatusReason value={one.status === 'running' ? 'updating' : one.status} reason={one.status_reason} />{' '}
      {one.bytes_read > 0 && <span>{bytesText(one.bytes_read)} read</span>}{' '}
      {one.phase === 'following' && <span>{one.lag_seconds ?? 0} s behind its source</span>}{' '}
      {shown.mayChange && one.phase === 'following' && (
        <button type="button" class="quiet small" onClick={() => void finish.run()} disabled={finish.isRunning}>
          Finish
        </button>
      )}{' '}
      {shown.mayChange && (isUnfinished(one) || one.source_slot !== null) && (
        <button type="button" class="quiet small" onClick={() => void cancel.run()} disabled={cancel.isRunning}>
          Cancel
        </button>
      )}
      <Problem error={cancel.error} />
      <Problem error={finish.error} />
      {one.tables.length > 0 && (
        <Table label="Imported tables" head={['Table', 'In the source', 'Imported']}>
          {one.tables.map(({ name, rows_read, rows }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{rows_read}</td>
              <td>{rows ?? '–'}</td>
            </tr>
          ))}
        </Table>
      )}
      {one.not_taken_over.length > 0 && (
        <Table label="Not imported" head={['Not imported', 'Name', 'Why']}>
          {one.not_taken_over.map(({ kind, name, reason }) => (
            <tr key={`${kind} ${name}`}>
              <th scope="row">{kind}</th>
              <td>{name}</td>
              <td>{reason}</td>
            </tr>
          ))}
        </Table>
      )}
    </article>
  );
}
