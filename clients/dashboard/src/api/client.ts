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

interface Answer {
  data?: unknown;
  errors?: { message: string; extensions?: Record<string, unknown> }[];
}

/** Codes that mean: nobody is signed in any more. */
const SIGNED_OUT = ['session_required', 'token_missing', 'token_invalid'];
const signedOut = new Set<() => void>();

/** Calls back when an answer says that the session is over. */
export function onSignedOut(listener: () => void): void {
  signedOut.add(listener);
}

/** Runs a query or a mutation. @throws ApiError, also where the server cannot be reached (code `unreachable`) */
export async function request<Data, Variables>(
  query: Query<Data, Variables>,
  variables: Variables,
  signal?: AbortSignal,
): Promise<Data> {
  const text = query as unknown as string;
  noteCall(text, variables);
  const { data, errors } = await post(text, variables, signal);
  if (!errors?.[0]) return data as Data;
  const error = toApiError(errors[0]);
  if (SIGNED_OUT.includes(error.code)) for (const listener of signedOut) listener();
  throw error;
}

async function post(query: string, variables: unknown, signal?: AbortSignal): Promise<Answer> {
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json' };
  const body = JSON.stringify({ query, variables });
  try {
    const response = await fetch('/graphql', { method: 'POST', headers, body, signal: signal ?? null });
    return (await response.json()) as Answer;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError('unreachable', 0, 'The server does not answer. Check your connection, and try again.');
  }
}

export function toApiError({ message, extensions = {} }: NonNullable<Answer['errors']>[number]): ApiError {
  const { code = 'internal_error', status = 500, errors = [] } = extensions;
  const fields = (errors as FieldError[]).map(({ field, detail }) => ({
    field: field.replace(/^input\./, ''),
    detail,
  }));
  return new ApiError(String(code), Number(status), message, fields, extensions);
}
