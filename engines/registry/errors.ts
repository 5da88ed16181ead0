// Errors of the OCI Distribution API (distribution-spec, "Error Codes").
import type { ServerResponse } from 'node:http';

const STATUS = {
  BLOB_UNKNOWN: 404,
  BLOB_UPLOAD_INVALID: 400,
  BLOB_UPLOAD_UNKNOWN: 404,
  DIGEST_INVALID: 400,
  MANIFEST_BLOB_UNKNOWN: 404,
  MANIFEST_INVALID: 400,
  MANIFEST_UNKNOWN: 404,
  NAME_INVALID: 400,
  NAME_UNKNOWN: 404,
  SIZE_INVALID: 400,
  UNAUTHORIZED: 401,
  DENIED: 403,
  UNSUPPORTED: 405,
  TOOMANYREQUESTS: 429,
  UNKNOWN: 500,
} as const;

type RegistryErrorCode = keyof typeof STATUS;

/** Ends a request. `message` is for people; `status` overrides the default of the code. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly status: number;

  constructor(
    readonly code: RegistryErrorCode,
    message: string,
    readonly more: { status?: number; headers?: Record<string, string>; detail?: unknown } = {},
  ) {
    super(message);
    this.status = more.status ?? STATUS[code];
  }
}

export function respondWithError(response: ServerResponse, { code, message, status, more }: RegistryError): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = JSON.stringify({
    errors: [{ code, message, ...(more.detail !== undefined && { detail: more.detail }) }],
  });
  response.writeHead(status, {
    ...more.headers,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}
