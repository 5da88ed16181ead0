// Responses of the endpoint.
import type { S3Request } from './request';
import type { S3Error } from './errors';
import { xmlDocument, xmlError, type XmlElements } from './xml';

type Answering = { request: S3Request };

export function sendEmpty({ request }: Answering, status: number, headers: Record<string, string> = {}): void {
  request.response.writeHead(status, status === 204 ? headers : { ...headers, 'content-length': '0' }).end();
}

export function sendXml(
  { request }: Answering,
  root: string,
  content: XmlElements,
  headers: Record<string, string> = {},
): void {
  sendPlainText(request, 200, xmlDocument(root, content), { ...headers, 'content-type': 'application/xml' });
}

export function sendPlainText(request: S3Request, status: number, text: string, headers: Record<string, string>): void {
  const body = Buffer.from(text);
  request.response.writeHead(status, { ...headers, 'content-length': String(body.length) });
  request.response.end(request.method === 'HEAD' ? undefined : body);
}

export function sendError(request: S3Request, error: S3Error): void {
  const { response } = request;
  if (response.headersSent) return void response.destroy();
  // The rest of the request body is not read.
  const headers = { ...error.headers, ...(!request.raw.complete && { connection: 'close' }) };
  if (error.code === 'NotModified') return void response.writeHead(304, headers).end();
  const content = { Code: error.code, Message: error.message, Resource: request.path, RequestId: request.id };
  sendPlainText(request, error.status, xmlError(content), { ...headers, 'content-type': 'application/xml' });
}
