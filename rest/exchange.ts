// Types shared by the steps of a REST request.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RootOperation } from '../contract/admission';
import type { LiveReader } from '../contract/live';
import type { Operation, OperationTable } from '../contract/operations';
import type { Reader } from '../contract/readers';
import type { Config } from '../core/config';
import type { Context, Identity, ProjectAccess } from '../core/context';
import type { ErrorCode } from '../core/errors';
import type { Handler } from './facade';
import type { IdempotencyStore } from './idempotency';
import type { Transitional } from './prefer_wait';

export interface RestParts {
  config: Config;
  table: OperationTable;
  /** Root fields by name. */
  operations: ReadonlyMap<string, RootOperation>;
  /** Compiled REST operations by id. */
  handlers: Map<string, Handler>;
  answers: IdempotencyStore;
  /** States that end by themselves, by GraphQL type. */
  transitional: Transitional;
  /** Readers of the lists that can be followed. */
  live: Map<string, LiveReader>;
  /** A fresh context, before authentication. */
  context(request: IncomingMessage, requestId: string): Context;
  /**
   * The identity of an Authorization header. @throws token_missing, token_invalid, token_expired, rate_limited (failed
   * attempts per address)
   */
  authenticate(header: string | undefined, address: string): Promise<Identity>;
  /** Documents matched before the operation table: OpenAPI, console. */
  document(path: string, request: IncomingMessage): Document | null;
  /** Called once per request for the log and the metrics. */
  done(entry: RestEntry): void;
}

interface Document {
  type: string;
  body: string | Buffer;
  headers?: Record<string, string>;
}

export interface RestEntry {
  request: IncomingMessage;
  /** performance.now() when it came. */
  started: number;
  request_id: string;
  operation: string | null;
  status: number;
  identity: Identity | null;
  project: ProjectAccess | null;
  code: ErrorCode | null;
  /** The thrown error if it was not a Problem: for the log only. */
  cause: unknown;
}

export type RestHandler = (request: IncomingMessage, response: ServerResponse, requestId: string) => Promise<void>;

export interface Exchange {
  parts: RestParts;
  /** The operation that reads the answer of another one, by its id. */
  readers: ReadonlyMap<string, Reader>;
  request: IncomingMessage;
  response: ServerResponse;
  started: number;
  ctx: Context;
  operation: Operation | null;
}
