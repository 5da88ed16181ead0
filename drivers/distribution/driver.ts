// A Distribution server (Debian's docker-registry) as container registry, on disk or on S3, on any number of machines.
// Clients connect to it; it accepts tokens signed by the platform, and sends notifications to the platform
// (requests.ts), which takes them on REGISTRY_PORT too.
import type { RegistryAction, RegistryContent, RegistryTokens } from '../../core/protocols/registry_content';
import type { DriverContext } from '../../core/driver';
import {
  type RegistryDriver,
  type RegistryMirror,
  openRegistryServer,
  type RegistryServerOptions,
} from '../../engines/registry';
import { openDistributionApi, type DistributionApi } from './api';
import { compareRegistry } from './mirror';
import { openDistributionRequests, type DistributionRequestsOptions } from './requests';

type DistributionOptions = RegistryServerOptions & DistributionRequestsOptions;

/** @throws Error with the code EADDRINUSE where the port is taken */
export async function openDistribution(options: DistributionOptions): Promise<RegistryDriver> {
  const { distributionUrl: url, content, tokens } = options;
  const api = openDistributionApi(url, (access) => tokens.issueOwn([access]));
  const serve = openDistributionRequests(options);
  const server = await openRegistryServer(options, (request, response) => {
    const address = request.socket.remoteAddress ?? '';
    void serve(request, response, { path: pathOf(request.url), address });
  });
  const access = (name: string, actions: readonly RegistryAction[]): string =>
    tokens.issueOwn([{ type: 'repository', name, actions }]);
  return {
    name: 'distribution',
    port: server.port,
    pullAccess: (name) => Promise.resolve({ url, token: access(name, ['pull']) }),
    pushAccess: (name) => Promise.resolve({ url, token: access(name, ['pull', 'push']) }),
    ownAccess: (rights) => ({ url, token: tokens.issueOwn(rights) }),
    pullLogin: (repository, seconds) => tokens.issuePullLogin(repository, seconds),
    loginFor: (registries) => tokens.issueLogin(registries),
    isPlain: url.startsWith('http:'),
    // Layer files are removed by the operator's garbage collection.
    removeUnused: () => Promise.resolve(),
    removeOldUploads: () => Promise.resolve(),
    async *listBlobs() {
      yield* [];
    },
    mirror: mirrorOf(api, content, tokens),
    close: () => server.close(),
  };
}

function mirrorOf(api: DistributionApi, content: RegistryContent, tokens: RegistryTokens): RegistryMirror {
  return {
    tokenSeconds: tokens.lifetimeSeconds,
    compare: (registry, ctx) => compareRegistry({ api, content }, registry, ctx),
    async remove(name, { manifests, blobs }, ctx) {
      for (const digest of manifests) await api.removeManifest(name, digest, ctx);
      for (const digest of blobs) await api.removeBlob(name, digest, ctx);
    },
    removeAll: (registry, ctx) => removeAll(api, registry, ctx),
  };
}

/** Includes pushes without a row, whose notification was lost. */
async function removeAll(api: DistributionApi, registry: string, ctx: DriverContext): Promise<void> {
  for await (const name of api.repositories(registry, ctx)) {
    for (const tag of await api.tags(name, ctx)) {
      const digest = await api.digest(name, tag, ctx);
      if (digest !== null) await api.removeManifest(name, digest, ctx);
    }
  }
}

function pathOf(url = '/'): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}
