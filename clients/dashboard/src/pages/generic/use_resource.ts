// What a generic page reads: asked when it is opened, and again when something has changed.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../../api/client';
import { queryText, run, type ListPage, type Row } from '../../api/resources/query';
import { knownArguments, type Operation, type Place, type ResourceTable } from '../../api/resources/table';
import { asApiError, useAgain } from '../../api/use_query';

export interface Read<Answer> {
  answer: Answer | null;
  etag: string | null;
  error: ApiError | null;
  reload(): Promise<void>;
}

/** @param work reads once; a new `key` begins anew */
export function useRead<Answer>(
  key: string,
  work: (signal: AbortSignal) => Promise<{ answer: Answer; etag: string | null }>,
): Read<Answer> {
  const [state, setState] = useState<{
    key: string;
    answer: Answer | null;
    etag: string | null;
    error: ApiError | null;
  }>({ key, answer: null, etag: null, error: null });
  const last = useRef<AbortController | null>(null);
  const newest = useRef(work);
  newest.current = work;
  const reload = useCallback(async () => {
    last.current?.abort();
    const controller = (last.current = new AbortController());
    try {
      const found = await newest.current(controller.signal);
      if (!controller.signal.aborted) setState({ key, ...found, error: null });
    } catch (error) {
      if (controller.signal.aborted) return;
      setState((before) => ({
        ...before,
        key,
        answer: before.key === key ? before.answer : null,
        error: asApiError(error),
      }));
    }
  }, [key]);
  useEffect(() => {
    void reload();
    return () => last.current?.abort();
  }, [reload]);
  useAgain(state.error, reload);
  const isCurrent = state.key === key;
  return { answer: isCurrent ? state.answer : null, etag: state.etag, error: isCurrent ? state.error : null, reload };
}

/** Pages of a list that are looked through for one item. */
const PAGES_MAX = 20;
const ROWS = 50;

/** Reads the document of a place. @param given further arguments. @throws ApiError */
export async function readDocument(
  table: ResourceTable,
  place: Place,
  given: Row = {},
  signal?: AbortSignal,
): Promise<{ answer: Row; etag: string | null }> {
  const operation = table.operations[place.page.read] as Operation;
  const { finds } = place.page;
  if (finds) return { answer: await findRow(table, place, operation, finds, signal), etag: null };
  const variables = { ...knownArguments(operation, place), ...given };
  const text = queryText(table, operation, Object.keys(variables));
  return run<Row>(operation, text, variables, { signal });
}

async function findRow(
  table: ResourceTable,
  place: Place,
  operation: Operation,
  finds: string,
  signal: AbortSignal | undefined,
): Promise<Row> {
  const text = queryText(table, operation, [...Object.keys(knownArguments(operation, place)), 'limit', 'cursor']);
  let cursor: string | null = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const variables: Row = { ...knownArguments(operation, place), limit: ROWS, cursor };
    const { answer }: { answer: ListPage } = await run<ListPage>(operation, text, variables, { signal });
    const found = answer.data.find((row) => String(row[finds]) === place.ids.at(-1));
    if (found) return found;
    cursor = answer.next_cursor;
    if (!cursor) break;
  }
  throw new ApiError('not_found', 404, 'This does not exist, or you have no access to it.');
}
