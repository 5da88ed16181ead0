// The one stream of a page: rows as they come, and on after a break where it stopped.
import { createClient, type ExecutionResult } from 'graphql-sse';
import { useEffect, useRef, useState } from 'preact/hooks';
import { noteCall } from './calls';
import { ApiError, noteRefusal, toApiError } from './client';
import type { Query } from './graphql';

export type StreamState = 'connecting' | 'live' | 'waiting' | 'ended';

const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];
/** Rows that come together are shown together. */
const BATCH_MS = 60;

// The client would send the same position again and again: it is told not to retry, and the loop below does.
const client = createClient({ url: '/graphql', retryAttempts: 0 });

interface Row {
  position: string;
}

/**
 * Follows a subscription as long as the page is open. `take` gets rows in their order, each once.
 * @param variables null follows nothing; those without `after`
 */
export function useStream<Data, Variables extends { after?: string | null }>(
  query: Query<Data, Variables>,
  variables: Variables | null,
  take: (rows: Data[keyof Data][]) => void,
): StreamState {
  const [state, setState] = useState<StreamState>('connecting');
  const taker = useRef(take);
  taker.current = take;
  const key = variables && JSON.stringify(variables);
  useEffect(() => {
    if (key === null) return undefined;
    const stop = new AbortController();
    const rows = batches<Data[keyof Data]>((batch) => taker.current(batch));
    const asked = { query: query as unknown as string, variables: JSON.parse(key) as Record<string, unknown> };
    noteCall(asked.query, asked.variables);
    void followAgain(asked, (row) => rows.add(row as Data[keyof Data]), setState, stop.signal);
    return () => {
      stop.abort();
      rows.drop();
    };
  }, [query, key]);
  return state;
}

interface Asked {
  query: string;
  variables: Record<string, unknown>;
}

async function followAgain(
  { query, variables }: Asked,
  take: (row: unknown) => void,
  say: (state: StreamState) => void,
  signal: AbortSignal,
): Promise<void> {
  let after = variables.after ?? null;
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      say(failures ? 'waiting' : 'connecting');
      await followOnce(
        { query, variables: { ...variables, after } },
        signal,
        () => say('live'),
        (row) => {
          failures = 0;
          after = row.position;
          take(row);
        },
      );
      return say('ended');
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError) await noteRefusal(error);
      // What the API refuses it will refuse again, unless it says otherwise.
      if (error instanceof ApiError && error.status !== 0 && error.status < 500 && error.status !== 429)
        return say('ended');
    }
    say('waiting');
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]));
  }
}

function followOnce(asked: Asked, signal: AbortSignal, open: () => void, take: (row: Row) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const sink = {
      next: ({ data, errors }: ExecutionResult<Record<string, Row>>): void => {
        const row = data && Object.values(data)[0];
        if (row) take(row);
        else if (errors?.[0])
          reject(toApiError({ message: errors[0].message, extensions: { ...errors[0].extensions } }));
      },
      error: (error: unknown) => reject(error instanceof Error ? error : new Error('The stream broke.')),
      complete: resolve,
    };
    const end = client.subscribe<Record<string, Row>>(asked, sink, { connected: open });
    signal.addEventListener('abort', end, { once: true });
  });
}

function batches<Item>(take: (items: Item[]) => void): { add(item: Item): void; drop(): void } {
  let waiting: Item[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    add(item) {
      waiting.push(item);
      timer ??= setTimeout(() => {
        timer = undefined;
        take(waiting.splice(0));
      }, BATCH_MS);
    },
    drop() {
      clearTimeout(timer);
      waiting = [];
    },
  };
}
