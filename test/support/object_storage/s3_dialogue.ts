// The same requests to two S3 endpoints, and what of their answers must be the same.
import { EMPTY_SHA256, sha256Hex, signedHeaders, type Credentials } from '../../../core/protocols/sigv4';
import { parseXml, type XmlNode } from '../../../engines/object_storage/xml';

export interface Side {
  endpoint: string;
  bucket: string;
  /** By the name of the caller; without one a request is not signed. */
  callers: Record<string, Credentials>;
}

export interface Step {
  method: string;
  /** Behind the bucket, encoded. */
  path?: string;
  /** `$name` is what an earlier step has saved. */
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: string;
  /** Caller; null = nobody. */
  as?: string | null;
  /** Keeps the first match in the body or the headers for later steps. */
  save?: Record<string, RegExp>;
}

/** What is compared. */
export interface Told {
  status: number;
  code: string | null;
  headers: Record<string, string>;
  /** Texts of elements by their path; those that differ by nature are there without a text. */
  members: string[];
  text: string | null;
}

/** Of one engine: times, ids and names of owners. */
const VARYING = new RegExp(
  '(LastModified|UploadId|VersionId\\w*|\\w*Marker|ID|DisplayName|RequestId|HostId|Message|Name|BucketName|Bucket|' +
    'Location|Initiated|Resource|Region)$',
);
/** What only one of them lists: owners (all objects of a bucket have one here), and where the next page begins. */
const APART = new RegExp(
  [
    ...['/(Owner|Initiator)/', '/Type=Normal$', '/\\w*(Key|UploadId|VersionId)Marker$', '/MfaDelete=Disabled$'],
    ...['/NextContinuationToken=', '^/ListMultipartUploadsResult/Prefix=$', '^/LocationConstraint='],
    '^/CompleteMultipartUploadResult/ETag=',
  ].join('|'),
);
const HEADERS = ['content-type', 'content-length', 'content-range', 'etag', 'cache-control', 'content-disposition'];

export async function tell(side: Side, step: Step, saved: Map<string, string>): Promise<Told> {
  const filled = (text: string): string => text.replace(/\$(\w+)/g, (whole, name: string) => saved.get(name) ?? whole);
  const url = new URL(`${side.endpoint}/${side.bucket}${step.path ?? ''}`);
  for (const [name, value] of Object.entries(step.query ?? {})) url.searchParams.set(name, filled(value));
  url.search = url.search.replaceAll('+', '%20');
  const body = step.body && filled(step.body).replaceAll('BUCKET', side.bucket);
  const given = Object.fromEntries(
    Object.entries(step.headers ?? {}).map(([name, value]) => [name, filled(value).replaceAll('BUCKET', side.bucket)]),
  );
  const caller = step.as === null ? null : side.callers[step.as ?? 'writer'];
  const payloadHash = body ? sha256Hex(body) : EMPTY_SHA256;
  const signed = caller
    ? signedHeaders({ method: step.method, url, headers: given, payloadHash, region: 'local', credentials: caller })
    : given;
  const { host: _, ...headers } = signed as Record<string, string>;
  const response = await fetch(url, { method: step.method, headers, ...(body && { body }), redirect: 'manual' });
  const text = await response.text();
  for (const [name, pattern] of Object.entries(step.save ?? {})) {
    const all = `${[...response.headers].map(([key, value]) => `${key}: ${value}`).join('\n')}\n${text}`;
    saved.set(name, pattern.exec(all)?.[1] ?? 'none');
  }
  return told(step.method, response, text);
}

function told(method: string, response: Response, text: string): Told {
  const { status } = response;
  const isXml = /^\s*</.test(text) && /xml/.test(response.headers.get('content-type') ?? 'xml');
  const root = isXml ? documentOf(text) : null;
  const code = root?.name === 'Error' ? (root.children.find(({ name }) => name === 'Code')?.text ?? null) : null;
  const isContent = root === null && status < 300 && ['GET', 'HEAD'].includes(method);
  const headers = isContent
    ? Object.fromEntries(
        HEADERS.flatMap((name) => [[name, response.headers.get(name) ?? '']]).filter(([, value]) => value),
      )
    : {};
  return {
    ...{ status, code, headers },
    members:
      root && code === null ? [...new Set(membersOf(root, ''))].filter((member) => !APART.test(member)).sort() : [],
    text: isContent ? text : null,
  };
}

function documentOf(text: string): XmlNode | null {
  const root = /<(\w+)[\s>]/.exec(text.replace(/^<\?.*?\?>\s*/, ''))?.[1];
  return root ? parseXml(text, root) : null;
}

function membersOf(node: XmlNode, path: string): string[] {
  const at = `${path}/${node.name}`;
  if (node.children.length) return node.children.flatMap((child) => membersOf(child, at));
  // Encoded, a slash may be one or %2F.
  return [VARYING.test(at) ? at : `${at}=${node.text.replaceAll('"', '').replaceAll('%2F', '/')}`];
}
