// Objects are read and written at the S3 address, another origin, with URLs that the API signs.
import { ApiError, request } from '../../api/client';
import { graphql } from '../../api/graphql';

const PRESIGN = graphql(`
  mutation PresignObject($id: ID!, $input: PresignBucketObjectInput!) {
    presignBucketObject(id: $id, input: $input) {
      url
    }
  }
`);
const CORS = graphql(`
  query BucketCors($id: ID!) {
    getBucketCors(id: $id) {
      rules {
        allowed_origins
        allowed_methods
        allowed_headers
        expose_headers
        max_age_seconds
      }
    }
  }
`);
const SET_CORS = graphql(`
  mutation SetBucketCors($id: ID!, $input: BucketCorsInput!) {
    setBucketCors(id: $id, input: $input) {
      rules {
        max_age_seconds
      }
    }
  }
`);

const UPLOAD_SECONDS = 6 * 3_600;
const DOWNLOAD_SECONDS = 300;
const METHODS = ['PUT', 'DELETE'] as const;

/** Whether the rules of a bucket let this page write its objects. */
export async function allowsThisPage(id: string): Promise<boolean> {
  const { getBucketCors } = await request(CORS, { id });
  return METHODS.every((method) =>
    getBucketCors.rules.some(
      ({ allowed_origins, allowed_methods, allowed_headers }) =>
        allowed_methods.includes(method) &&
        allowed_origins.some((one) => one === '*' || one === location.origin) &&
        (method !== 'PUT' || allowed_headers.some((one) => ['*', 'content-type'].includes(one.toLowerCase()))),
    ),
  );
}

/** Adds a rule for this origin to those that the bucket has. */
export async function allowThisPage(id: string): Promise<void> {
  const { getBucketCors } = await request(CORS, { id });
  const own = { allowed_origins: [location.origin], allowed_methods: [...METHODS], allowed_headers: ['content-type'] };
  await request(SET_CORS, { id, input: { rules: [...getBucketCors.rules, own] } });
}

export async function downloadUrl(id: string, key: string): Promise<string> {
  const input = { key, method: 'GET' as const, expires_in_seconds: DOWNLOAD_SECONDS };
  return (await request(PRESIGN, { id, input })).presignBucketObject.url;
}

export async function removeObject(id: string, key: string): Promise<void> {
  const input = { key, method: 'DELETE' as const, expires_in_seconds: DOWNLOAD_SECONDS };
  const { presignBucketObject } = await request(PRESIGN, { id, input });
  await send('DELETE', presignBucketObject.url, null, () => {});
}

/** @param progress is called with the part that is sent, 0 to 1 */
export async function uploadObject(
  id: string,
  key: string,
  file: File,
  progress: (part: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  const content_type = file.type || 'application/octet-stream';
  const input = { key, method: 'PUT' as const, expires_in_seconds: UPLOAD_SECONDS, content_type };
  const { presignBucketObject } = await request(PRESIGN, { id, input });
  await send('PUT', presignBucketObject.url, { file, content_type }, progress, signal);
}

interface Content {
  file: File;
  content_type: string;
}

// fetch does not tell how much of a body has been sent.
function send(
  method: string,
  url: string,
  content: Content | null,
  progress: (part: number) => void,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open(method, url);
    if (content) call.setRequestHeader('Content-Type', content.content_type);
    call.upload.addEventListener('progress', ({ loaded, total }) => progress(total ? loaded / total : 1));
    call.addEventListener('load', () => {
      if (call.status < 300) resolve();
      else reject(new ApiError('object_storage', call.status, refusalOf(call)));
    });
    call.addEventListener('error', () => reject(new ApiError('object_storage', 0, UNREACHED)));
    call.addEventListener('abort', () => reject(new ApiError('object_storage', 0, 'The upload was stopped.')));
    signal?.addEventListener('abort', () => call.abort(), { once: true });
    call.send(content?.file ?? null);
  });
}

const UNREACHED =
  'The browser could not reach the address of the bucket, or its CORS rules do not allow this page. ' +
  'A page with https needs an S3 address with https.';

function refusalOf(call: XMLHttpRequest): string {
  const message = /<Message>([^<]*)<\/Message>/.exec(call.responseText)?.[1];
  return message ?? `The object storage answered ${call.status}.`;
}
