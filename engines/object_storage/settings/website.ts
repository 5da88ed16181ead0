// Static website hosting: index documents for directories, and one error document.
import { mayDo, type ObjectExchange } from '../endpoint_context';
import { S3Error, s3ErrorOf } from '../errors';
import { readObject } from '../read_object';
import { sendPlainText } from '../respond';
import { uriEncodePath } from '../../../core/protocols/sigv4';

/** GET or HEAD of a path. @returns bytes of content sent */
export async function serveWebsite(exchange: Omit<ObjectExchange, 'key' | 'versionId'>): Promise<number> {
  const { request, bucket, catalog } = exchange;
  if (!bucket.website) throw new S3Error('NoSuchWebsiteConfiguration');
  if (request.method !== 'GET' && request.method !== 'HEAD') throw new S3Error('MethodNotAllowed');
  const path = request.key ?? '';
  const { index_document } = bucket.website;
  const key = path === '' || path.endsWith('/') ? path + index_document : path;
  const object = await catalog.find(bucket.id, key, null);
  const isThere = object && !object.is_delete_marker && mayDo(exchange, 's3:GetObject', key, object.is_public);
  const redirect = isThere ? object.metadata.headers['x-amz-website-redirect-location'] : undefined;
  if (redirect) return redirectTo(exchange, 301, redirect);
  if (isThere) return readObject({ ...exchange, key, versionId: null });
  const index = await catalog.find(bucket.id, `${path}/${index_document}`, null);
  if (path && !path.endsWith('/') && index && !index.is_delete_marker)
    return redirectTo(exchange, 302, `/${uriEncodePath(path)}/`);
  return sendMissing(exchange);
}

function redirectTo({ request }: Pick<ObjectExchange, 'request'>, status: number, location: string): number {
  request.response.writeHead(status, { location, 'content-length': '0' }).end();
  return 0;
}

async function sendMissing(exchange: Omit<ObjectExchange, 'key' | 'versionId'>): Promise<number> {
  const { request, bucket } = exchange;
  const key = bucket.website?.error_document;
  if (key) {
    try {
      return await readObject({ ...exchange, key, versionId: null, isErrorDocument: true });
    } catch (error) {
      if (s3ErrorOf(error).unknown) throw error;
    }
  }
  sendPlainText(request, 404, '<!doctype html><title>Not found</title><h1>Not found</h1>\n', {
    'content-type': 'text/html',
  });
  return 0;
}
