// The interface of requests and responses that the ingress uses, implemented by node:http and simple_connection.ts.
import type { IncomingHttpHeaders } from 'node:http';

export interface VisitorRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly headers: IncomingHttpHeaders;
  /** Alternating names and values. */
  readonly rawHeaders: string[];
  readonly rawTrailers: string[];
  /** The whole body has been received. */
  readonly complete: boolean;
  /** The whole body of a simple request, received together with the head. Other requests emit `data`. */
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
  /** The kernel has accepted the last byte. */
  readonly writableFinished: boolean;
  readonly writableNeedDrain: boolean;
  readonly socket: object | null;
  writeHead(status: number, headers: Record<string, string | number>): unknown;
  /** @throws Error for characters not allowed in a head */
  writeHead(status: number, message: string, headers: string[]): unknown;
  flushHeaders(): void;
  writeContinue(): void;
  writeEarlyHints(hints: { link: string[] }): void;
  addTrailers(trailers: [string, string][]): void;
  /** @returns false where the caller should wait for `drain` */
  write(chunk: Buffer): boolean;
  write(chunk: string, encoding: BufferEncoding): boolean;
  end(): unknown;
  end(last: Buffer | string, encoding?: BufferEncoding): unknown;
  destroy(): unknown;
  on(event: 'close' | 'error', listener: () => void): unknown;
  once(event: 'drain', listener: () => void): unknown;
}
