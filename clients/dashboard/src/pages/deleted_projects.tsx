// Below the list of projects: those that were deleted, and until when their owners can restore them.
import { request } from '../api/client';
import { graphql, type ResultOf } from '../api/graphql';
import { useAction, useQuery } from '../api/use_query';
import { Problem } from '../parts/form';
import { showNotice } from '../parts/notices';
import { Section } from '../parts/page';
import { RowsTable } from '../parts/table';
import { Ago } from '../parts/time';
import { RESTORE_PROJECT } from '../parts/undo';
import { loadSession } from '../session';

const DELETED = graphql(`
  query DeletedProjects {
    listDeletedProjects(limit: 100) {
      data {
        id
        resource {
          id
          name
        }
        deleted_by {
          name
        }
        deleted_at
        kept_until
      }
    }
  }
`);

type Entry = ResultOf<typeof DELETED>['listDeletedProjects']['data'][number];

/** @param restored asks for the list of projects again */
export function DeletedProjects({ restored }: { restored(): Promise<void> }) {
  const { data, reload } = useQuery(DELETED, {});
  const entries = data?.listDeletedProjects.data ?? [];
  if (!entries.length) return null;
  const done = async (): Promise<void> => void (await Promise.all([reload(), restored(), loadSession()]));
  return (
    <Section title="Deleted projects">
      <RowsTable
        label="Deleted projects"
        rows={entries}
        keyOf={({ id }) => id}
        columns={{
          Name: ({ resource }) => resource.name ?? resource.id,
          'Deleted by': (entry) => entry.deleted_by?.name ?? '–',
          Deleted: (entry) => <Ago time={entry.deleted_at} />,
          'Kept until': (entry) => <Ago time={entry.kept_until} />,
          '': (entry) => <Restore entry={entry} done={done} />,
        }}
      />
    </Section>
  );
}

function Restore({ entry: { id, resource }, done }: { entry: Entry; done(): Promise<void> }) {
  const name = resource.name ?? resource.id;
  const restore = useAction(async () => {
    const { restoreDeletedProject } = await request(RESTORE_PROJECT, { id });
    await done();
    showNotice({ text: [`The project ${name} was restored.`, ...restoreDeletedProject.notes].join(' ') });
  });
  return (
    <>
      <button type="button" class="quiet small" aria-disabled={restore.isRunning} onClick={() => void restore.run()}>
        Restore<span class="off-screen"> {name}</span>
      </button>
      <Problem error={restore.error} />
    </>
  );
}
