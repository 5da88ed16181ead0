// Fields of an operation, what the API says of them, and what it answers.
import { useState } from 'preact/hooks';
import { queryText, run, type Row } from '../../api/resources/query';
import { hrefOf, knownArguments, type Operation, type Value } from '../../api/resources/table';
import { useAction, type Action } from '../../api/use_query';
import { Form, Problem, Submit } from '../../parts/form';
import { reversalText } from '../../parts/reversal';
import { navigate } from '../../router';
import { loadSession } from '../../session';
import { Conflict, conflictOf, type Versions } from './conflict';
import { draftsOf, emptyDrafts, fieldsOf, inputOf, type Drafts } from './draft';
import { Fields } from './fields';
import { hrefAfterDeletion, type Around } from './links';
import { OperationCall } from './operation_call';
import { Outcome } from './outcome';
import { Prose } from './prose';
import { isEdit, words } from './words';

export interface OperationFormProps {
  around: Around;
  operation: Operation;
  /** Of what the operation is about. */
  name: string;
  /** What is there. */
  row: Row;
  etag: string | null;
}

export function OperationForm(props: OperationFormProps) {
  const { around, operation, name } = props;
  const { table, place } = around;
  const form = useOperation(props);
  const [typed, setTyped] = useState('');
  const isReady = !operation.destroys || typed === name;
  if (form.outcome) return <Outcome around={around} operation={operation} row={form.outcome} />;
  const shared = { table, place, error: form.action.error, isEdit: form.isEdit };
  const rules = table.inputs[form.body?.type ?? '']?.rules ?? [];
  return (
    <Form class="generic-form" action={{ run: async () => isReady && (await form.action.run()) }}>
      {rules.length > 0 && (
        <p class="faint">
          <Prose text={rules.join(' ')} />
        </p>
      )}
      {form.versions && <Conflict around={around} versions={form.versions} settle={form.settle} />}
      <Fields {...shared} fields={form.args} drafts={form.argDrafts} path="" changed={form.setArgDrafts} />
      <Fields {...shared} fields={form.fields} drafts={form.drafts} path="" changed={form.setDrafts} />
      {operation.destroys && (
        <>
          <p>{reversalText(operation.reversibleBy, place.projectId, place.page.type)}</p>
          <label>
            Type <strong>{name}</strong> to confirm
            <input
              value={typed}
              data-question
              autocomplete="off"
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        </>
      )}
      {!form.versions && <Problem error={form.action.error} fields={pathsOf(form.action.error)} />}
      <footer class="actions">
        <a role="button" class="quiet" data-discard href={hrefOf(place.key, place.projectId, place.ids)}>
          Cancel
        </a>
        {isReady ? (
          <Submit action={form.action}>{words(operation.name)}</Submit>
        ) : (
          <button type="submit" class="danger" disabled>
            {words(operation.name)}
          </button>
        )}
      </footer>
      <OperationCall
        around={around}
        operation={operation}
        args={form.variables}
        input={form.input}
        fields={form.fields}
      />
    </Form>
  );
}

interface OperationState {
  /** Arguments beside the body that the address does not say. */
  args: readonly Value[];
  argDrafts: Drafts;
  setArgDrafts(drafts: Drafts): void;
  body: Value | undefined;
  fields: readonly Value[];
  drafts: Drafts;
  setDrafts(drafts: Drafts): void;
  variables: Row;
  input: Row;
  isEdit: boolean;
  action: Action<void>;
  versions: Versions | null;
  settle(which: 'mine' | 'theirs'): void;
  outcome: Row | null;
}

function useOperation({ around, operation, row, etag }: OperationFormProps): OperationState {
  const { table, place } = around;
  const known = knownArguments(operation, place);
  const body = operation.args.find(({ name }) => name === operation.body);
  const fields = body ? fieldsOf(table, body) : [];
  const args = operation.args.filter(({ name }) => !(name in known) && name !== operation.body);
  const edits = isEdit(operation, place.page) && Object.keys(row).length > 0;
  const [base, setBase] = useState({ row, etag });
  const [drafts, setDrafts] = useState(() => (edits ? draftsOf(table, fields, row) : emptyDrafts(table, fields)));
  const [argDrafts, setArgDrafts] = useState(() => emptyDrafts(table, args));
  const [versions, setVersions] = useState<Versions | null>(null);
  const [outcome, setOutcome] = useState<Row | null>(null);
  const before = edits && operation.method === 'PATCH' ? draftsOf(table, fields, base.row) : undefined;
  const input = inputOf(table, fields, drafts, before);
  const variables = { ...known, ...inputOf(table, args, argDrafts) };
  const action = useAction(async () => {
    setVersions(null);
    const sent = body ? { ...variables, [body.name]: input } : variables;
    const text = queryText(table, operation, Object.keys(sent));
    const match = edits && base.etag ? { 'If-Match': base.etag } : undefined;
    try {
      if (edits && !base.etag) await conflictOf(around, fields, base.row, 'compare');
      const { answer } = await run<Row | boolean>(operation, text, sent, match && { headers: match });
      await leave(around, operation, answer, setOutcome);
    } catch (error) {
      setVersions(await conflictOf(around, fields, base.row, error, drafts));
      throw error;
    }
  });
  const settle = (which: 'mine' | 'theirs'): void => {
    if (!versions) return;
    if (which === 'theirs') setDrafts(draftsOf(table, fields, versions.theirs));
    setBase({ row: versions.theirs, etag: versions.etag });
    setVersions(null);
    action.clear();
  };
  const state = { args, argDrafts, setArgDrafts, body, fields, drafts, setDrafts, variables, input };
  return { ...state, isEdit: edits, action, versions, settle, outcome };
}

/** To what has become of it; an answer that is shown once stays. */
async function leave(
  { table, place, patterns }: Around,
  operation: Operation,
  answer: Row | boolean,
  show: (row: Row) => void,
): Promise<void> {
  if (operation.name.endsWith('Project')) await loadSession();
  if (typeof answer === 'boolean') {
    const isGone = operation.method === 'DELETE';
    const around = { table, place, patterns };
    return navigate(isGone ? hrefAfterDeletion(around) : hrefOf(place.key, place.projectId, place.ids));
  }
  const { page, key, projectId, ids } = place;
  const isOfPage = operation.answer === page.type;
  if (operation.hasSecret || !isOfPage) return show(answer);
  if (!page.isList) return navigate(hrefOf(key, projectId, ids));
  const item = table.pages[`${key}/{}`];
  const id = answer[item?.finds ?? 'id'];
  if (page.type === 'Project') return navigate(`/projects/${String(answer.id)}`);
  navigate(item && typeof id === 'string' ? hrefOf(`${key}/{}`, projectId, [...ids, id]) : hrefOf(key, projectId, ids));
}

/** Fields of the form that have an error show it themselves. */
function pathsOf(error: { errors: readonly { field: string }[] } | null): string[] {
  return (error?.errors ?? []).map(({ field }) => field).filter((path) => document.getElementsByName(path).length > 0);
}
