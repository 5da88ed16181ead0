// The environment of an application: edited as a whole, compared before it is saved.
import { useEffect, useState } from 'preact/hooks';
import { request, type ApiError } from '../../api/client';
import { graphql } from '../../api/graphql';
import { asApiError, useAction } from '../../api/use_query';
import { Problem } from '../../parts/form';
import { showNotice } from '../../parts/notices';
import { Empty, Waiting } from '../../parts/page';
import { useUnsaved } from '../../parts/unsaved';
import { DatabasesOfApplication } from '../attachments/list';
import { PendingVariables } from '../attachments/pending';
import { TryAgain } from './deploy';
import { ApplicationFrame, type Shown } from './frame';
import {
  changesOf,
  conflictsOf,
  draftOf,
  mergeDotenv,
  type Change,
  type Conflict,
  type Draft,
  type Variable,
} from './draft';
import { ConflictList, Review } from './review';
import { Paste, VariableRows } from './variable_rows';
import { appFlags } from '../../parts/command';

const LIST = graphql(`
  query Environment($id: ID!, $cursor: String) {
    listEnvironmentVariables(id: $id, limit: 100, cursor: $cursor) {
      data {
        key
        value
        value_hash
        available_at
        managed_by
        updated_at
      }
      next_cursor
    }
  }
`);
const SET = graphql(`
  mutation SetEnvironment($id: ID!, $input: SetEnvironmentVariablesInput!) {
    setEnvironmentVariables(id: $id, input: $input) {
      key
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteVariable($id: ID!, $key: String!) {
    deleteEnvironmentVariable(id: $id, key: $key)
  }
`);
const RESTART = graphql(`
  mutation RestartForEnvironment($id: ID!) {
    restartApplication(id: $id) {
      id
    }
  }
`);

async function loadVariables(id: string): Promise<Variable[]> {
  const all: Variable[] = [];
  let cursor: string | null = null;
  do {
    const {
      listEnvironmentVariables: page,
    }: { listEnvironmentVariables: { data: Variable[]; next_cursor: string | null } } = await request(LIST, {
      id,
      cursor,
    });
    all.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor);
  return all;
}

export function Environment({ id }: { id: string }) {
  return (
    <ApplicationFrame id={id} section="Environment" command={(app) => `svc env ls${app}`}>
      {(shown) =>
        shown.mayChange ? (
          <Loader shown={shown} />
        ) : (
          <p class="notice">The values are secrets: developers and owners of the project see them.</p>
        )
      }
    </ApplicationFrame>
  );
}

function Loader({ shown }: { shown: Shown }) {
  const { id } = shown.application;
  const [stored, setStored] = useState<Variable[] | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  useEffect(() => {
    loadVariables(id).then(setStored, (problem: unknown) => setError(asApiError(problem)));
  }, [id]);
  if (!stored) return <Waiting error={error} />;
  return <Editor shown={shown} stored={stored} setStored={setStored} />;
}

interface EditorProps {
  shown: Shown;
  stored: Variable[];
  setStored(variables: Variable[]): void;
}

function Editor({ shown, stored, setStored }: EditorProps) {
  const { id, status } = shown.application;
  const [drafts, setDrafts] = useState<Draft[]>(() => stored.map(draftOf));
  const [isReviewing, setReviewing] = useState(false);
  const [conflicts, setConflicts] = useState<Conflict[]>([]);
  const [saved, setSaved] = useState('');
  const changes = changesOf(stored, drafts);
  const show = (written: Variable[]): void => (setStored(written), setDrafts(written.map(draftOf)));
  useUnsaved(() => changes.length > 0);
  const save = useAction(async (isRestarting: boolean) => {
    const now = await loadVariables(id);
    const found = conflictsOf(stored, now, changes);
    if (found.length) {
      setConflicts(found);
      setStored(now);
      return;
    }
    await write(id, changes);
    noticeRemoved(id, changes, show);
    if (isRestarting) await request(RESTART, { id });
    show(await loadVariables(id));
    setReviewing(false);
    setSaved(isRestarting ? 'Saved. The application restarts.' : 'Saved. The next deployment or restart uses it.');
    await shown.reload();
  });
  useEffect(() => {
    // Somebody was faster, between the comparison and the writing.
    if (save.error?.code === 'precondition_failed') void save.run(false);
  }, [save.error]);
  const settle = (key: string, which: 'mine' | 'theirs'): void => {
    if (which === 'theirs') setDrafts(takeTheirs(drafts, stored, key));
    setConflicts(conflicts.filter((conflict) => conflict.key !== key));
  };
  return (
    <>
      <Saved text={saved} application={shown.application} />
      <PendingVariables shown={shown} version={stored} />
      <ConflictList conflicts={conflicts} settle={settle} />
      {drafts.length === 0 && <NoVariables application={shown.application} />}
      <VariableRows
        projectId={shown.application.project_id}
        drafts={drafts}
        changed={(next) => (setDrafts(next), setSaved(''))}
      />
      <Paste paste={(text) => setDrafts(mergeDotenv(drafts, text))} />
      <Problem error={save.error?.code === 'precondition_failed' ? null : save.error} />
      <Footer
        count={changes.length}
        isBlocked={conflicts.length > 0}
        discard={() => setDrafts(stored.map(draftOf))}
        review={() => setReviewing(true)}
      />
      {isReviewing && !conflicts.length && (
        <Review changes={changes} isRunning={status === 'running'} action={save} onClose={() => setReviewing(false)} />
      )}
      <Databases {...{ shown, stored, setStored, drafts, setDrafts }} />
    </>
  );
}

interface DatabasesProps extends EditorProps {
  drafts: Draft[];
  setDrafts(drafts: Draft[]): void;
}

function Databases({ shown, stored, setStored, drafts, setDrafts }: DatabasesProps) {
  const { id, project_id } = shown.application;
  const taken = stored.flatMap(({ key, managed_by }) => (managed_by === null ? [key] : []));
  /** What is being edited stays: an attachment changes variables that nobody edits. */
  const changed = async (): Promise<void> => {
    const now = await loadVariables(id);
    setStored(now);
    setDrafts(withManaged(drafts, now));
    await shown.reload();
  };
  return <DatabasesOfApplication {...{ id, taken, changed }} projectId={project_id} mayChange={shown.mayChange} />;
}

function withManaged(drafts: readonly Draft[], now: readonly Variable[]): Draft[] {
  const managed = now.filter(({ managed_by }) => managed_by !== null).map(draftOf);
  const own = drafts.filter((draft) => !draft.managed && !managed.some(({ key }) => key === draft.key));
  return [...own, ...managed].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Whatever failed for want of a variable is tried again from here. */
function Saved({ text, application }: { text: string; application: Shown['application'] }) {
  const { latest_deployment: last } = application;
  return (
    <div aria-live="polite" class={text ? 'notice good saved' : 'off-screen'}>
      <span>{text}</span>
      {text && last?.status === 'failed' && <TryAgain application={application} deployment={last} />}
    </div>
  );
}

function NoVariables({ application }: { application: Shown['application'] }) {
  return (
    <Empty title="No variables yet" command={`svc env set KEY=value${appFlags(application)}`}>
      Variables reach the program when it is built and when it runs. Their values are stored encrypted.
    </Empty>
  );
}

interface FooterProps {
  count: number;
  isBlocked: boolean;
  discard(): void;
  review(): void;
}

function Footer({ count, isBlocked, discard, review }: FooterProps) {
  const isIdle = !count || isBlocked;
  return (
    <footer class="actions">
      <span class="faint">{count ? `${count} unsaved` : 'No change'}</span>
      <button type="button" class="quiet" aria-disabled={!count} onClick={discard}>
        Discard
      </button>
      <button type="button" aria-disabled={isIdle} onClick={() => isIdle || review()}>
        Review and save
      </button>
    </footer>
  );
}

/** The API compares once more: a variable that has changed meanwhile is refused with `precondition_failed`. */
async function write(id: string, changes: readonly Change[]): Promise<void> {
  const variables = changes.flatMap(({ key, after, before }) =>
    after
      ? [{ key, value: after.value, available_at: after.available_at, expected_hash: before?.value_hash ?? '' }]
      : [],
  );
  if (variables.length) await request(SET, { id, input: { variables } });
  for (const { key, after } of changes) if (!after) await request(DELETE, { id, key });
}

/** What was removed can be set again. */
function noticeRemoved(id: string, changes: readonly Change[], show: (written: Variable[]) => void): void {
  const removed = changes.flatMap(({ before, after }) => (before && !after ? [before] : []));
  if (!removed.length) return;
  const variables = removed.map(({ key, value, available_at }) => ({ key, value, available_at }));
  showNotice({
    text: `${removed.map(({ key }) => key).join(', ')} ${removed.length === 1 ? 'was' : 'were'} removed.`,
    undo: async () => {
      await request(SET, { id, input: { variables } });
      show(await loadVariables(id));
    },
  });
}

function takeTheirs(drafts: Draft[], stored: readonly Variable[], key: string): Draft[] {
  const theirs = stored.find((variable) => variable.key === key);
  const others = drafts.filter((draft) => draft.key !== key);
  return theirs ? [...others, draftOf(theirs)].sort((a, b) => (a.key < b.key ? -1 : 1)) : others;
}
