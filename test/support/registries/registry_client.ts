// A client of the OCI Distribution API that asks for what a test needs, right or wrong. Programs that others wrote are
// in test/engines.
import { createHash, randomBytes } from 'node:crypto';

export interface RegistryAnswer {
  status: number;
  headers: Headers;
  body: Buffer;
  /** Code of the first error. */
  code: string | null;
}

interface PushedImage {
  digest: string;
  manifestBytes: number;
  configBytes: number;
  mediaType: string;
}

interface PushOptions {
  subject?: PushedImage;
  artifactType?: string;
}

export interface RegistryClient {
  call(method: string, path: string, body?: Buffer, headers?: Record<string, string>): Promise<RegistryAnswer>;
  startUpload(name: string): Promise<{ location: string }>;
  pushBlob(name: string, content: Buffer): Promise<string>;
  putManifest(name: string, reference: string, parts: { layers: string[] }): Promise<RegistryAnswer>;
  /** @param tag null: pushed by its digest */
  pushImage(name: string, tag: string | null, layers: Buffer[], options?: PushOptions): Promise<PushedImage>;
  pull(name: string, reference: string, options?: { sameToken?: boolean }): Promise<RegistryAnswer>;
}

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar';

export function startRegistryClient(options: { port: number; username: string; password: string }): RegistryClient {
  const base = `http://127.0.0.1:${options.port}`;
  let token = '';

  const send: RegistryClient['call'] = async (method, path, body, headers = {}) => {
    const answer = await fetch(new URL(path, base), {
      method,
      body: body && new Uint8Array(body),
      headers: { ...headers, ...(token && { Authorization: `Bearer ${token}` }) },
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    const code = answer.status >= 400 ? codeOf(bytes) : null;
    return { status: answer.status, headers: answer.headers, body: bytes, code };
  };

  /** As clients do: a refusal names the scope, and the token server is asked for it. */
  const call: RegistryClient['call'] = async (...args) => {
    const first = await send(...args);
    const challenge = first.headers.get('www-authenticate') ?? '';
    const [, realm = ''] = /realm="([^"]+)"/.exec(challenge) ?? [];
    const scope = /scope="([^"]+)"/.exec(challenge)?.[1];
    if (first.status !== 401 || scope === undefined) return first;
    const basic = Buffer.from(`${options.username}:${options.password}`).toString('base64');
    const all = scope.replace(/:[a-z,]+$/, ':pull,push,delete');
    const issued = await fetch(`${realm}?scope=${encodeURIComponent(all)}`, {
      headers: { Authorization: `Basic ${basic}` },
    });
    if (issued.status !== 200) return first;
    ({ token } = (await issued.json()) as { token: string });
    return send(...args);
  };

  const client: RegistryClient = {
    call,
    async startUpload(name) {
      const answer = await call('POST', `/v2/${name}/blobs/uploads/`);
      if (answer.status !== 202) throw new Error(`the upload was answered ${answer.status}`);
      return { location: answer.headers.get('location') ?? '' };
    },
    async pushBlob(name, content) {
      const { location } = await client.startUpload(name);
      const digest = digestOf(content);
      const answer = await call('PUT', `${location}${location.includes('?') ? '&' : '?'}digest=${digest}`, content);
      if (answer.status !== 201) throw new Error(`the layer was answered ${answer.status}`);
      return digest;
    },
    putManifest(name, reference, { layers }) {
      const [first = ''] = layers;
      const manifest = {
        schemaVersion: 2,
        mediaType: MANIFEST,
        config: { mediaType: CONFIG, digest: first, size: 1 },
        layers: layers.map((digest) => ({ mediaType: LAYER, digest, size: 1 })),
      };
      return call('PUT', `/v2/${name}/manifests/${reference}`, Buffer.from(JSON.stringify(manifest)), {
        'Content-Type': MANIFEST,
      });
    },
    async pushImage(name, tag, layers, { subject, artifactType } = {}) {
      const config = Buffer.from(
        JSON.stringify({ architecture: 'amd64', os: 'linux', id: randomBytes(8).toString('hex') }),
      );
      const descriptors = [];
      for (const layer of layers)
        descriptors.push({ mediaType: LAYER, digest: await client.pushBlob(name, layer), size: layer.length });
      const manifest = {
        ...{ schemaVersion: 2, mediaType: MANIFEST, ...(artifactType && { artifactType }) },
        config: { mediaType: CONFIG, digest: await client.pushBlob(name, config), size: config.length },
        layers: descriptors,
        ...(subject && {
          subject: { mediaType: subject.mediaType, digest: subject.digest, size: subject.manifestBytes },
        }),
      };
      const body = Buffer.from(JSON.stringify(manifest));
      const digest = digestOf(body);
      const answer = await call('PUT', `/v2/${name}/manifests/${tag ?? digest}`, body, { 'Content-Type': MANIFEST });
      if (answer.status !== 201)
        throw new Error(`the manifest was answered ${answer.status}: ${answer.body.toString()}`);
      return { digest, manifestBytes: body.length, configBytes: config.length, mediaType: MANIFEST };
    },
    pull: (name, reference, { sameToken = false } = {}) =>
      (sameToken ? send : call)('GET', `/v2/${name}/manifests/${reference}`, undefined, { Accept: MANIFEST }),
  };
  return client;
}

function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

function codeOf(body: Buffer): string | null {
  try {
    return (JSON.parse(body.toString('utf8')) as { errors?: { code: string }[] }).errors?.[0]?.code ?? null;
  } catch {
    return null;
  }
}
