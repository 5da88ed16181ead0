// Client of a Distribution server (github.com/distribution/distribution), with tokens issued by the platform itself.
import type { RegistryAccess } from '../../core/protocols/registry_content';
import { trusted } from '../../core/outbound/client';
import { checkpoint, DriverError, EngineAway, type DriverContext } from '../../core/driver';

interface FoundManifest {
  digest: string;
  media_type: string;
  content: Buffer;
}

export interface DistributionApi {
  /** @param reference a tag or a digest. @returns null for a missing manifest */
  manifest(name: string, reference: string, ctx: DriverContext): Promise<FoundManifest | null>;
  /** The digest of a reference; null for a missing one. */
  digest(name: string, reference: string, ctx: DriverContext): Promise<string | null>;
  tags(name: string, ctx: DriverContext): Promise<string[]>;
  /** Names of repositories of a registry, including those without images. */
  repositories(registry: string, ctx: DriverContext): AsyncIterable<string>;
  /** Absent is success. */
  removeManifest(name: string, digest: string, ctx: DriverContext): Promise<void>;
  /** Removes a layer from a repository; its file is removed by the next garbage collection of the server. */
  removeBlob(name: string, digest: string, ctx: DriverContext): Promise<void>;
}

const MANIFESTS = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');
const PAGE = 500;
const ANSWER_WITHIN_MS = 15_000;
const CATALOG: RegistryAccess = { type: 'registry', name: 'catalog', actions: ['*'] };

type Call = (method: string, path: string, access: RegistryAccess, ctx: DriverContext) => Promise<Response>;

function openCalls(url: string, tokenFor: (access: RegistryAccess) => string): Call {
  return async (method, path, access, ctx) => {
    checkpoint(ctx);
    const within = { ms: ANSWER_WITHIN_MS, of: 'response' } as const;
    const headers = { Authorization: `Bearer ${tokenFor(access)}`, Accept: MANIFESTS };
    const answer = await trusted(new URL(path, url), { method, headers, within, signal: ctx.signal }).catch(() => {
      throw new EngineAway('The container registry does not answer.');
    });
    if (answer.status < 400 || answer.status === 404) return answer;
    const text = (await answer.text()).slice(0, 500);
    const isRefused = answer.status === 401 || answer.status === 403;
    const failure = isRefused
      ? new DriverError('unauthorized', 'The container registry refuses the token of the platform.')
      : new EngineAway('The container registry has failed.');
    const cause = new Error(`${method} ${path}: ${answer.status} ${text}`);
    throw Object.assign(failure, { cause });
  };
}

/** @param tokenFor issues a token for this access */
export function openDistributionApi(url: string, tokenFor: (access: RegistryAccess) => string): DistributionApi {
  const call = openCalls(url, tokenFor);
  const pull = (name: string): RegistryAccess => ({ type: 'repository', name, actions: ['pull'] });
  const remove = async (name: string, path: string, ctx: DriverContext): Promise<void> => {
    const access: RegistryAccess = { type: 'repository', name, actions: ['pull', 'delete'] };
    await (await call('DELETE', `/v2/${name}/${path}`, access, ctx)).arrayBuffer();
  };
  return {
    async manifest(name, reference, ctx) {
      const answer = await call('GET', `/v2/${name}/manifests/${reference}`, pull(name), ctx);
      const content = Buffer.from(await answer.arrayBuffer());
      if (answer.status === 404) return null;
      const { headers } = answer;
      const digest = headers.get('docker-content-digest') ?? '';
      return { digest, media_type: headers.get('content-type') ?? '', content };
    },
    async digest(name, reference, ctx) {
      const answer = await call('HEAD', `/v2/${name}/manifests/${reference}`, pull(name), ctx);
      return answer.status === 404 ? null : answer.headers.get('docker-content-digest');
    },
    async tags(name, ctx) {
      const answer = await call('GET', `/v2/${name}/tags/list`, pull(name), ctx);
      const { tags } = (await answer.json()) as { tags?: string[] | null };
      return answer.status === 404 ? [] : (tags ?? []);
    },
    async *repositories(registry, ctx) {
      for (let last = registry; ;) {
        const answer = await call('GET', `/v2/_catalog?n=${PAGE}&last=${encodeURIComponent(last)}`, CATALOG, ctx);
        const { repositories } = (await answer.json()) as { repositories?: string[] | null };
        const found = (repositories ?? []).filter((name) => name.startsWith(`${registry}/`));
        yield* found;
        if (found.length < PAGE) return;
        last = found[found.length - 1] as string;
      }
    },
    removeManifest: (name, digest, ctx) => remove(name, `manifests/${digest}`, ctx),
    removeBlob: (name, digest, ctx) => remove(name, `blobs/${digest}`, ctx),
  };
}
