// What was deleted in a project and can be restored, and until when.
import { useState } from 'preact/hooks';
import { ApiError, request } from '../api/client';
import { graphql, type ResultOf } from '../api/graphql';
import { useAction, useQuery } from '../api/use_query';
import { Confirm, Dialog } from '../parts/dialog';
import { Field, Form, Problem, Submit, useFields } from '../parts/form';
import { showNotice } from '../parts/notices';
import { Empty, Page, Waiting } from '../parts/page';
import { Paging } from '../parts/paging';
import { RowsTable } from '../parts/table';
import { Ago } from '../parts/time';
import { kindWords } from '../parts/words';
import { mayActAs, projectOf } from '../session';
import { projectFlag } from '../parts/command';

const BIN = graphql(`
  query Bin($id: ID!, $cursor: String) {
    listDeletedResources(id: $id, limit: 50, cursor: $cursor) {
      data {
        id
        resource {
          type
          id
          name
        }
        deleted_by {
          name
        }
        deleted_at
        kept_until
        purge_from
      }
      next_cursor
    }
  }
`);
const RESTORE = graphql(`
  mutation RestoreDeletedResource($id: ID!, $input: RestoreDeletedResourceInput) {
    restoreDeletedResource(id: $id, input: $input) {
      notes
    }
  }
`);
const PURGE = graphql(`
  mutation PurgeDeletedResource($id: ID!) {
    purgeDeletedResource(id: $id)
  }
`);

type Entry = ResultOf<typeof BIN>['listDeletedResources']['data'][number];

export function Bin({ id }: { id: string }) {
  const [cursor, go] = useState<string | null>(null);
  const { data, error, reload } = useQuery(BIN, { id, cursor });
  const list = data?.listDeletedResources;
  const mayChange = mayActAs('developer', id);
  return (
    <Page title="Bin" projectId={id} command={`svc bin ls${projectFlag(id)}`}>
      <p class="faint">
        What is deleted {keptText(projectOf(id)?.deleted_retention_days)}, with its data and its credentials. It does
        not run. What was older than a day stays for a day at least.
      </p>
      {!list && <Waiting error={error} />}
      {list?.data.length === 0 && <Empty title="The bin is empty">Deleted resources can be restored from here.</Empty>}
      {list && list.data.length > 0 && (
        <RowsTable
          label="Deleted resources"
          rows={list.data}
          keyOf={(entry) => entry.id}
          columns={{
            Name: (entry) => nameOf(entry),
            Kind: ({ resource }) => kindWords(resource.type),
            'Deleted by': (entry) => entry.deleted_by?.name ?? '–',
            Deleted: (entry) => <Ago time={entry.deleted_at} />,
            'Kept until': (entry) => <Ago time={entry.kept_until} />,
            ...(mayChange && { '': (entry: Entry) => <Actions entry={entry} reload={reload} /> }),
          }}
        />
      )}
      {list && <Paging cursor={cursor} next={list.next_cursor} go={go} />}
    </Page>
  );
}

function keptText(days: number | undefined): string {
  if (days === 0) return 'is not kept by this platform; what was deleted before is';
  return `is kept here for ${days === 1 ? 'one day' : `${days ?? 'some'} days`}`;
}

function nameOf({ resource }: Entry): string {
  return resource.name ?? resource.id;
}

function Actions({ entry, reload }: { entry: Entry; reload(): Promise<void> }) {
  const [asks, setAsks] = useState<'name' | 'purge' | null>(null);
  const name = nameOf(entry);
  const restore = useAction(async () => {
    try {
      await restoreAs(entry);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      return setAsks('name');
    }
    await reload();
  });
  return (
    <>
      <button type="button" class="quiet small" aria-disabled={restore.isRunning} onClick={() => void restore.run()}>
        Restore<span class="off-screen"> {name}</span>
      </button>
      {Date.parse(entry.purge_from as string) <= Date.now() && (
        <button type="button" class="quiet small" onClick={() => setAsks('purge')}>
          Delete for good<span class="off-screen"> {name}</span>
        </button>
      )}
      <Problem error={restore.error} />
      {asks === 'name' && <Rename entry={entry} reload={reload} onClose={() => setAsks(null)} />}
      {asks === 'purge' && (
        <Confirm
          title={`Delete ${name} for good?`}
          verb="Delete for good"
          typed={name}
          work={async () => {
            await request(PURGE, { id: entry.id });
            await reload();
          }}
          done={`${name} was deleted for good.`}
          onClose={() => setAsks(null)}
        >
          Its data are removed. This cannot be undone.
        </Confirm>
      )}
    </>
  );
}

async function restoreAs(entry: Entry, name?: string): Promise<void> {
  const { restoreDeletedResource } = await request(RESTORE, { id: entry.id, input: name ? { name } : undefined });
  const said = [`${name ?? nameOf(entry)} was restored.`, ...restoreDeletedResource.notes];
  showNotice({ text: said.join(' ') });
}

interface RenameProps {
  entry: Entry;
  reload(): Promise<void>;
  onClose(): void;
}

/** Something else has its name by now. */
function Rename({ entry, reload, onClose }: RenameProps) {
  const fields = useFields({ name: `${nameOf(entry)}-restored` });
  const action = useAction(async () => {
    await restoreAs(entry, fields.values.name);
    onClose();
    await reload();
  });
  return (
    <Dialog title={`Restore ${nameOf(entry)}`} onClose={onClose}>
      <Form action={action}>
        <p>Something else has this name now.</p>
        <Field label="New name" {...fields.of('name')} error={action.error} />
        <Problem error={action.error} fields={['name']} />
        <footer class="actions">
          <Submit action={action}>Restore</Submit>
        </footer>
      </Form>
    </Dialog>
  );
}
