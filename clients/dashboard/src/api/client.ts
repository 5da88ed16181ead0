// The client of the API: one POST a query, with the session of the browser.
import { noteCall } from './calls';
import type { Query } from './graphql';

export interface FieldError {
  /** Path of the field in the input, such as `source.branch`. */
  field: string;
  detail: string;
}

/** An error of the API, with the code of its table. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    message: string,
    readonly errors: readonly FieldError[] = [],
    readonly members: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

export const UNREACHABLE = 'The server does not answer. Check your connection, and try again.';

interface Answer {
  data?: unknown;
  errors?: { message: string; extensions?: Record<string, unknown> }[];
  etag?: string | null;
}

/** Codes that mean that nobody is logged in any more, or that an operation is for keys alone. */
const REFUSED = ['session_required', 'token_missing', 'token_invalid'];
const signedOut = new Set<() => void>();

/** Calls back when an answer says that the session is over. */
export function onLoggedOut(listener: () => void): void {
  signedOut.add(listener);
}

/** Runs a query or a mutation. @throws ApiError, also where the server cannot be reached (code `unreachable`) */
export async function request<Data, Variables>(
  query: Query<Data, Variables>,
  variables: Variables,
  signal?: AbortSignal,
): Promise<Data> {
  return (await requestWith(query, variables, { signal })).data;
}

/** What goes with a query beside its variables. */
export interface Sent {
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** As request. @returns also the ETag, where one resource was asked for */
export async function requestWith<Data, Variables>(
  query: Query<Data, Variables>,
  variables: Variables,
  sent: Sent,
): Promise<{ data: Data; etag: string | null }> {
  const text = query as unknown as string;
  noteCall(text, variables);
  const { data, errors, etag = null } = await post(text, variables, sent);
  if (!errors?.[0]) return { data: data as Data, etag };
  const error = toApiError(errors[0]);
  await noteRefusal(error, text);
  throw error;
}

/**
 * Calls back those of `onLoggedOut` where an error says that the session is over.
 * @param query that was refused, where it is known
 */
export async function noteRefusal({ code }: ApiError, query = ''): Promise<void> {
  if (REFUSED.includes(code) && (await isSignedOut(code, query))) for (const listener of signedOut) listener();
}

const WHO = '{ viewer { user { id } } }';

/** `getMe` describes a key, and refuses a session that is still there. What asks who is logged in has asked already. */
async function isSignedOut(code: string, query: string): Promise<boolean> {
  if (code === 'session_required' || /\bviewer\s*\{/.test(query)) return true;
  const { errors } = await post(WHO, {}, {});
  return toApiError(errors?.[0] ?? { message: '' }).code === 'session_required';
}

/** The header counts in seconds, and answers take a while. */
const CLOCK_STEP_MS = 5_000;
let clockAheadMs = 0;

/** By the clock of the API, to a second or two: that of a browser may be wrong by minutes. */
export const timeOfApi = (): number => Date.now() + clockAheadMs;

function compareClocks(date: string | null): void {
  const ahead = date ? Date.parse(date) - Date.now() : 0;
  clockAheadMs = Math.abs(ahead) > CLOCK_STEP_MS ? ahead : 0;
}

async function post(query: string, variables: unknown, { headers, signal }: Sent): Promise<Answer> {
  const types = { 'Content-Type': 'application/json', Accept: 'application/json' };
  const body = JSON.stringify({ query, variables });
  try {
    const response = await fetch('/graphql', {
      method: 'POST',
      headers: { ...types, ...headers },
      body,
      signal: signal ?? null,
    });
    compareClocks(response.headers.get('date'));
    return { ...((await response.json()) as Answer), etag: response.headers.get('etag') };
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError('unreachable', 0, UNREACHABLE);
  }
}

export function toApiError({ message, extensions = {} }: NonNullable<Answer['errors']>[number]): ApiError {
  const { code = 'internal_error', status = 500 } = extensions;
  return new ApiError(String(code), Number(status), message, fieldErrorsOf(message, extensions), extensions);
}

/** Errors of fields are in `errors`, in a list of their own such as `record_errors`, or the one that `field` names. */
function fieldErrorsOf(message: string, extensions: Record<string, unknown>): FieldError[] {
  const lists = Object.entries(extensions).filter(([name, list]) => /(^|_)errors$/.test(name) && Array.isArray(list));
  const listed = lists.flatMap(([, list]) => list as Partial<FieldError>[]);
  const { field: only } = extensions;
  const found = listed.length || typeof only !== 'string' ? listed : [{ field: only, detail: message }];
  return found.flatMap(({ field, detail }) =>
    typeof field === 'string' ? [{ field: field.replace(/^input\./, ''), detail: detail ?? message }] : [],
  );
}
