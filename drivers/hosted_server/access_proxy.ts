// Access proxy for public endpoints. Servers listen on the loopback interface only: that of the project's network, if
// it has one, or of the host. If a database has allowed sources, a small program listens on its port on the other
// addresses of the host, and forwards connections from allowed networks unmodified: TLS ends in the server. For few
// allowed addresses the kernel forwards them instead, where it can (forwarded_sources.ts). The program is a separate
// unit, `<id>.proxy`, so it outlives the control plane, as does the server. New rules apply within a second, without a
// restart; clients that are no longer allowed are disconnected. When all connections are in use, a client address with
// few connections displaces one of the youngest of the address with most: unauthenticated connections cannot lock
// others out.
import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { HostedServerSpec } from '../hosted_server';
import { requireNetwork } from '../allowed_source';
import { shellQuoted } from './driver';
import type { DriverContext } from '../../core/driver';
import { HOST_NETWORK, type NetworkLocation } from '../../core/outbound/network_location';
import { connectInside, readProgram } from '../network/programs';
import type { PortToForward } from '../runtime';
import { portToForward } from './forwarded_sources';
import { unitOf as serverUnitOf } from './unit';
import {
  writeFileFor,
  ownerOf,
  readNote,
  removeNote,
  writeNote,
  type EngineContext,
  type ServerDirectory,
} from './server_directory';

/**
 * `publicAddresses`: addresses of this host for public endpoints; null = all except those of the loopback interface.
 */
export interface ProxyContext extends EngineContext {
  publicAddresses: string[] | null;
  /** In the host network, the server listens on the other addresses itself. */
  onlyIntoNetworks?: boolean;
  /** The server leaves TLS optional: at public endpoints it is required, by this protocol. */
  tlsRequiredIn?: 'mysql';
}

/** The part of the server's spec that the proxy needs. */
type ProxiedServer = HostedServerSpec & { id: string; size: { max_connections: number } };

interface Rules {
  port: number;
  location: NetworkLocation;
  addresses: string[] | null;
  sources: string[];
  connections: number;
  tlsRequiredIn: 'mysql' | null;
}

/** The process name is independent of the name of its source file. */
const program = { ...readProgram(__dirname, 'access_proxy_program.js'), name: 'access_proxy.js' };
const CLIENTS_MAX = 10_000;
const noteName = 'access_proxy';
const targetNoteName = 'access_proxy_target';
const fileName = 'access_proxy.json';
const limits = { memory_mb: 128, cpus: 1, processes: 64, time_ms: null, output_bytes: 1 << 20, disk_mb: null };

/** For servers that listen on the addresses of the host themselves, unless they are in another network. */
export function networkProxy(engine: EngineContext): ProxyContext {
  return { ...engine, publicAddresses: null, onlyIntoNetworks: true };
}

/** Spec of a listener, whose program has its own limits. */
export function proxiedListener({ id, spec }: { id: string; spec: HostedServerSpec }): ProxiedServer {
  const { tenant, port, running, allowed_sources } = spec;
  return { id, tenant, port, running, allowed_sources, size: { max_connections: CLIENTS_MAX } };
}

/** The difference, for the operator; null = none. Read-only. */
export async function proxyDifference(
  engine: ProxyContext,
  serverDirectory: ServerDirectory,
  spec: ProxiedServer,
): Promise<'access proxy' | null> {
  const desired = isDesired(engine, spec);
  if (desired !== (await isRunning(engine, spec.id))) return 'access proxy';
  if (!(await engine.runtime.isForwarded(serverUnitOf(spec.id), forwardOf(engine, spec)))) return 'access proxy';
  return !desired || (await readNote<string>(serverDirectory, noteName)) === digestOf(engine, spec)
    ? null
    : 'access proxy';
}

/** Starts, reconfigures or stops the proxy. */
export async function ensureProxy(
  engine: ProxyContext,
  serverDirectory: ServerDirectory,
  spec: ProxiedServer,
  ctx: DriverContext,
): Promise<void> {
  if ((await proxyDifference(engine, serverDirectory, spec)) === null) return;
  if (!isDesired(engine, spec)) return stopProxy(engine, spec.id, ctx);
  await removeNote(serverDirectory, noteName);
  await writeFileFor(
    path.join(serverDirectory.conf, fileName),
    JSON.stringify(rulesOf(engine, spec)),
    await ownerOf(serverDirectory),
  );
  if (!(await isRunning(engine, spec.id)) || !(await isOfTarget(engine, serverDirectory, spec)))
    await startProxy(engine, serverDirectory, spec, ctx);
  await engine.runtime.forwardPort(serverUnitOf(spec.id), forwardOf(engine, spec), ctx);
  await writeNote(serverDirectory, noteName, digestOf(engine, spec));
}

export async function stopProxy(engine: EngineContext, id: string, ctx: DriverContext): Promise<void> {
  await engine.runtime.forwardPort(serverUnitOf(id), null, ctx);
  await engine.runtime.destroy(unitOf(id), ctx);
}

async function startProxy(
  engine: ProxyContext,
  serverDirectory: ServerDirectory,
  spec: ProxiedServer,
  ctx: DriverContext,
): Promise<void> {
  const directory = path.join(serverDirectory.path, 'proxy');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const owner = await ownerOf(serverDirectory);
  for (const { name, text } of [program, connectInside]) await writeFileFor(path.join(directory, name), text, owner);
  await engine.runtime.destroy(unitOf(spec.id), ctx);
  const node = process.execPath;
  const location = engine.runtime.locationOf(serverUnitOf(spec.id));
  const conf = serverDirectory.conf;
  await engine.runtime.start(
    {
      id: unitOf(spec.id),
      kind: 'service',
      directory,
      root_directory: '.',
      command:
        `exec ${shellQuoted(node)} --max-old-space-size=48 ${program.name} ` + shellQuoted(path.join(conf, fileName)),
      mounts: engine.onlyIntoNetworks ? [] : [{ source: conf, target: conf }],
      env: {},
      tenant: spec.tenant,
      limits,
      readable: [
        ...(node.startsWith('/usr/') ? [] : [path.dirname(path.dirname(node))]),
        ...(engine.onlyIntoNetworks ? [conf] : []),
        ...('gate' in location ? [path.dirname(location.gate)] : []),
      ],
    },
    ctx,
  );
  await writeNote(serverDirectory, targetNoteName, targetOf(engine, spec));
}

// A running program reloads its rules, but cannot switch networks. Programs of earlier versions connect in the host
// network, and do not require TLS.
async function isOfTarget(engine: ProxyContext, directory: ServerDirectory, spec: ProxiedServer): Promise<boolean> {
  const target = (await readNote<string>(directory, targetNoteName)) ?? JSON.stringify(HOST_NETWORK);
  return target === targetOf(engine, spec);
}

function targetOf(engine: ProxyContext, { id }: ProxiedServer): string {
  const { tlsRequiredIn } = engine;
  return JSON.stringify({ ...engine.runtime.locationOf(serverUnitOf(id)), tlsRequiredIn });
}

async function isRunning(engine: EngineContext, id: string): Promise<boolean> {
  const handle = await engine.runtime.find(unitOf(id));
  return handle !== null && (await engine.runtime.inspect(handle)).state === 'running';
}

function isDesired(engine: ProxyContext, spec: ProxiedServer): boolean {
  if (engine.onlyIntoNetworks && targetOf(engine, spec) === JSON.stringify(HOST_NETWORK)) return false;
  return spec.running && spec.allowed_sources.length > 0;
}

function forwardOf(engine: ProxyContext, spec: ProxiedServer): PortToForward | null {
  if (!isDesired(engine, spec) || engine.tlsRequiredIn !== undefined) return null; // The kernel reads no protocol.
  return portToForward(spec.port, sourcesOf(spec), engine.publicAddresses);
}

function rulesOf(engine: ProxyContext, spec: ProxiedServer): Rules {
  return {
    port: spec.port,
    location: engine.runtime.locationOf(serverUnitOf(spec.id)),
    addresses: engine.publicAddresses,
    sources: sourcesOf(spec),
    connections: spec.size.max_connections,
    tlsRequiredIn: engine.tlsRequiredIn ?? null,
  };
}

function sourcesOf({ allowed_sources }: ProxiedServer): string[] {
  return allowed_sources.map(requireNetwork);
}

function digestOf(engine: ProxyContext, spec: ProxiedServer): string {
  return createHash('sha256')
    .update(JSON.stringify([rulesOf(engine, spec), program, connectInside]))
    .digest('hex');
}

function unitOf(id: string): string {
  return `${id}.proxy`;
}
