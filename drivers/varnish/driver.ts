// Varnish as the cache of CDN zones: one or more nodes, local or remote. Visitors connect to the ingress of this host,
// which selects the node of an object; the node fetches missing objects from the gateway of this host.
import http from 'node:http';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PurgeSpec } from '../../engines/cdn/cdn';
import { DriverError } from '../../core/driver';
import { openEdge, type CdnEngine, type EdgeOptions } from '../../engines/cdn/edge/edge';
import type { EdgeState } from '../../engines/cdn/edge/edge_state';
import { openGateway, type Gateway } from './gateway';
import { openNode, type VarnishNode } from './node';
import { serveThroughVarnish, type Front } from './serve';
import { renderVcl } from './vcl';

interface VarnishOptions extends EdgeOptions {
  nodes: readonly { host: string; port: number; cliPort: number }[];
  /** The file of -S. */
  secretFile: string;
  /** Address of this host's gateway for the nodes. */
  gateway: {
    host: string;
    port: number;
    /** Secret of this installation: letters, digits, `-` and `_`. */
    token: string;
  };
  objectBytesMax: number;
}

const REFUSED = 'Varnish refuses the configuration of the platform. The log of the service says why.';
const READY_WITHIN_MS = 5_000;
/** A response whose head Varnish received before a purge is stored within this time. */
const STORED_AFTER_MS = 500;

/** @throws Error where the port of the gateway is taken or the secret is unreadable */
export async function openVarnish({ nodes, secretFile, ...options }: VarnishOptions): Promise<CdnEngine> {
  const { gateway: at, objectBytesMax, log } = options;
  const { token } = at;
  const secret = readFileSync(secretFile);
  const vcl = renderVcl(at);
  let state: EdgeState | undefined;
  const front: Front = { token, agent: new http.Agent({ keepAlive: true, maxFreeSockets: 256 }), nodes: [] };
  const engine = openEdge(options, (edge) => {
    state = edge;
    const purge = (zoneId: string, spec: PurgeSpec, name: string): Promise<void> => {
      const node = front.nodes.find((one) => one.name === name);
      return node && gateway ? purgeNode(gateway, node, zoneId, spec) : Promise.resolve();
    };
    return {
      name: 'varnish',
      cache: {
        serve: (visit) => serveThroughVarnish(front, visit),
        async invalidate(zoneId, spec) {
          // An unreachable node is emptied before it serves again.
          await Promise.allSettled(front.nodes.map(({ name }) => purge(zoneId, spec, name)));
        },
      },
      nodes: () => front.nodes.map(({ name }) => name),
      purge,
      async zonesChanged() {
        const ready = await Promise.any(front.nodes.map((node) => isReady(node))).catch(() => false);
        if (!ready) throw unusable(front.nodes);
      },
      async close() {
        await Promise.all(front.nodes.map((node) => node.close()));
        front.agent.destroy();
        await gateway?.close();
      },
    };
  });
  const gateway: Gateway | undefined = await openGateway(state as EdgeState, { ...at, objectBytesMax });
  front.nodes = nodes.map((node) => openNode({ ...node, secret, vcl, log }));
  return engine;
}

function unusable(nodes: readonly VarnishNode[]): DriverError {
  if (nodes.every((node) => node.isRefusing())) return new DriverError('unsupported', REFUSED);
  return new DriverError('transient', 'No cache can be reached.');
}

async function isReady(node: VarnishNode): Promise<true> {
  if (await node.whenReady(READY_WITHIN_MS)) return true;
  throw new Error('not ready');
}

/** Bans do not match objects stored later: pending responses are not stored, or purged by a second ban. */
async function purgeNode(gateway: Gateway, node: VarnishNode, zoneId: string, purge: PurgeSpec): Promise<void> {
  const mayBeStoredYet = gateway.cancelFetches(zoneId, purge);
  await node.purge(zoneId, purge);
  if (!mayBeStoredYet) return;
  await sleep(STORED_AFTER_MS);
  await node.purge(zoneId, purge);
}
