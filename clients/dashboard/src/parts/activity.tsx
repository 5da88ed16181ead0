// What happened in a project: a live list, and its table.
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { graphql, type ResultOf } from '../api/graphql';
import { useStream } from '../api/follow';
import { mayActAs } from '../session';
import { Confirm } from './dialog';
import { Waiting } from './page';
import { ResourceLink } from './resource_name';
import { Status } from './status';
import { RowsTable } from './table';
import { Ago } from './time';
import { revertEntry } from './undo';
import { words } from './words';

/** What the table shows. */
export const ACTIVITY_FIELDS = graphql(`
  fragment ActivityFields on Activity {
    id
    action
    outcome
    actor {
      name
      type
    }
    resource {
      type
      id
      name
    }
    revertible
    reverted_by
    created_at
  }
`);
const ACTIVITY = graphql(
  `
    subscription ProjectActivity($id: ID!, $after: String) {
      followProjectActivity(id: $id, after: $after) {
        position
        ...ActivityFields
      }
    }
  `,
  [ACTIVITY_FIELDS],
);

type Entry = ResultOf<typeof ACTIVITY_FIELDS>;

const ENTRIES_MAX = 200;
/** Where no entry has come for so long, there is none. */
const QUIET_MS = 500;

/** Newest first, as they come; null until the first have come. @param changed is called where there are new ones */
export function useActivity(id: string, changed: () => void): readonly Entry[] | null {
  const [entries, setEntries] = useState<readonly Entry[]>([]);
  const state = useStream(ACTIVITY, { id }, (rows) => {
    setEntries((before) => [...[...rows].reverse(), ...before].slice(0, ENTRIES_MAX));
    if (entries.length) changed();
  });
  const [isQuiet, setQuiet] = useState(false);
  useEffect(() => {
    if (state !== 'live') return undefined;
    const timer = setTimeout(() => setQuiet(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, [state]);
  return entries.length || isQuiet ? entries : null;
}

/** Entries that this page has reverted: the stream does not send them again. */
const reverted = signal<readonly string[]>([]);
const isReverted = (id: string): boolean => reverted.value.includes(id);

function Revert({ entry: { id, action, resource, ...entry } }: { entry: Entry }) {
  const [asks, setAsks] = useState(false);
  if (!entry.revertible || isReverted(id)) return null;
  const what = `${words(action)} ${resource.name ?? resource.type.replace(/_/g, ' ')}`;
  const work = async (): Promise<void> => {
    await revertEntry(id);
    reverted.value = [...reverted.value, id];
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Undo<span class="off-screen"> {what}</span>
      </button>
      {asks && (
        <Confirm
          title="Undo this change?"
          verb="Undo"
          work={work}
          done={`Undone: ${what}.`}
          onClose={() => setAsks(false)}
        >
          {what}: it becomes as it was before, unless it has changed again since. The undo is an entry of its own, and
          can be undone.
        </Confirm>
      )}
    </>
  );
}

interface ActivityTableProps {
  projectId: string;
  entries: readonly Entry[] | null;
}

export function ActivityTable({ projectId, entries }: ActivityTableProps) {
  if (!entries) return <Waiting />;
  if (!entries.length) return <p class="faint">No activity yet.</p>;
  return (
    <RowsTable<Entry>
      label="Activity"
      rows={entries}
      keyOf={({ id }) => id}
      columns={{
        What: ({ action, outcome, ...entry }) => (
          <>
            {words(action)} {outcome === 'refused' && <Status value="refused" />}
            {(entry.reverted_by || isReverted(entry.id)) && <span class="faint"> reverted</span>}
          </>
        ),
        Resource: ({ resource }) => (
          <ResourceLink projectId={projectId} id={resource.id} name={resource.name} kind={resource.type} />
        ),
        Who: ({ actor }) => actor.name,
        When: ({ created_at }) => <Ago time={created_at} />,
        ...(mayActAs('developer', projectId) && { '': (entry) => <Revert entry={entry} /> }),
      }}
    />
  );
}
