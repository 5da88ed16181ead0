// What the ingress needs of a visitor's request and of its response. Those of node:http are such ones, and those of
// simple_connection.ts.
import type { IncomingHttpHeaders } from 'node:http';

export interface VisitorRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly headers: IncomingHttpHeaders;
  /** Name, value, name, value. */
  readonly rawHeaders: string[];
  readonly rawTrailers: string[];
  /** Its body has come whole. */
  readonly complete: boolean;
  /** Of a simple request: all of its body, which came with the head. Others give theirs with `on`. */
  readonly body?: Buffer | null;
  readonly socket: { readonly remoteAddress?: string | undefined };
  on(event: 'data', listener: (chunk: Buffer) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  once(event: 'end' | 'close', listener: () => void): unknown;
  pause(): unknown;
  resume(): unknown;
  isPaused(): boolean;
}

export interface VisitorResponse {
  shouldKeepAlive: boolean;
  readonly headersSent: boolean;
  /** Its last byte has gone to the kernel. */
  readonly writableFinished: boolean;
  readonly writableNeedDrain: boolean;
  readonly socket: object | null;
  writeHead(status: number, headers: Record<string, string | number>): unknown;
  /** @throws Error for what must not stand in a head */
  writeHead(status: number, message: string, headers: string[]): unknown;
  flushHeaders(): void;
  writeContinue(): void;
  writeEarlyHints(hints: { link: string[] }): void;
  addTrailers(trailers: [string, string][]): void;
  /** @returns false where the visitor should take bytes first: `drain` tells when it has */
  write(chunk: Buffer): boolean;
  write(chunk: string, encoding: BufferEncoding): boolean;
  end(): unknown;
  end(last: Buffer | string, encoding?: BufferEncoding): unknown;
  destroy(): unknown;
  on(event: 'close' | 'error', listener: () => void): unknown;
  once(event: 'drain', listener: () => void): unknown;
}
