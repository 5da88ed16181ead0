// What a page shows of the API: asked once a page, again when something has changed.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, request } from './client';
import type { Query } from './graphql';

export interface Loaded<Data> {
  /** Of the last answer; stays while it is asked again. */
  data: Data | null;
  error: ApiError | null;
  reload(): Promise<void>;
}

interface State<Data> {
  key: string;
  data: Data | null;
  error: ApiError | null;
}

/** What the page on the screen has asked for. */
const loads = new Set<() => Promise<void>>();

/** Asks for all of it again, after something outside of the page has changed it. */
export async function reloadPage(): Promise<void> {
  await Promise.all([...loads].map((load) => load()));
}

/** @param pollMs asks again and again; 0 asks once */
export function useQuery<Data, Variables>(
  query: Query<Data, Variables>,
  variables: Variables,
  pollMs = 0,
): Loaded<Data> {
  const key = JSON.stringify(variables);
  const [state, setState] = useState<State<Data>>({ key, data: null, error: null });
  const last = useRef<AbortController | null>(null);
  const load = useCallback(async () => {
    last.current?.abort();
    const controller = (last.current = new AbortController());
    try {
      const data = await request(query, JSON.parse(key) as Variables, controller.signal);
      setState({ key, data, error: null });
    } catch (error) {
      if (controller.signal.aborted) return;
      setState((before) => ({ key, data: before.key === key ? before.data : null, error: asApiError(error) }));
    }
  }, [query, key]);
  useEffect(() => {
    void load();
    return () => last.current?.abort();
  }, [load]);
  useEffect(() => {
    if (!pollMs) return undefined;
    const timer = setInterval(() => void (document.hidden || load()), pollMs);
    return () => clearInterval(timer);
  }, [load, pollMs]);
  useAgain(state.error, load);
  useEffect(() => {
    loads.add(load);
    return () => void loads.delete(load);
  }, [load]);
  return { data: state.data, error: state.key === key ? state.error : null, reload: load };
}

const AGAIN_MS = 2_000;

/** Reads again what failed for a reason that passes: a connection that is lost, an API that restarts. */
export function useAgain(error: ApiError | null, load: () => Promise<void>): void {
  useEffect(() => {
    if (error?.code !== 'unreachable' && error?.status !== 503) return undefined;
    const timer = setInterval(() => void (document.hidden || load()), AGAIN_MS);
    return () => clearInterval(timer);
  }, [error, load]);
}

/** What is no error of the API is a mistake of the page, which the console shows. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  console.error(error);
  return new ApiError('page_error', 0, 'The page has made a mistake. Reload it, and try again.');
}

export interface Action<Input> {
  isRunning: boolean;
  error: ApiError | null;
  run(input: Input): Promise<boolean>;
  clear(): void;
}

/** Something that a person starts, once at a time. `run` answers whether it succeeded. */
export function useAction<Input = void>(work: (input: Input) => Promise<unknown>): Action<Input> {
  const [state, setState] = useState<{ isRunning: boolean; error: ApiError | null }>({ isRunning: false, error: null });
  const run = async (input: Input): Promise<boolean> => {
    if (state.isRunning) return false;
    setState({ isRunning: true, error: null });
    try {
      await work(input);
      setState({ isRunning: false, error: null });
      return true;
    } catch (error) {
      setState({ isRunning: false, error: asApiError(error) });
      return false;
    }
  };
  return { ...state, run, clear: () => setState({ isRunning: false, error: null }) };
}
