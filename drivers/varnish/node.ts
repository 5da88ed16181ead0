// A Varnish node: connected over its management port, configured, and taken out of service while it is unreachable.
import { setTimeout as sleep } from 'node:timers/promises';
import type { PurgeSpec } from '../../engines/cdn/cdn';
import { DriverError } from '../../core/driver';
import { bansOf } from './bans';
import { connectCli, VarnishError, type VarnishCli } from './cli';
import { VCL_PREFIX } from './vcl';

export interface VarnishNode {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Configured, and recently reached. */
  isReady(): boolean;
  /** A request failed: out of service until the management port responds again. */
  suspect(): void;
  purge(zoneId: string, purge: PurgeSpec): Promise<void>;
  /** Resolves when the node is ready, or false on timeout or if it rejects the configuration. */
  whenReady(milliseconds: number): Promise<boolean>;
  /** It was reached, and rejected the configuration: it serves with its previous one. */
  isRefusing(): boolean;
  close(): Promise<void>;
}

interface NodeOptions {
  host: string;
  port: number;
  cliPort: number;
  secret: Buffer;
  vcl: { name: string; text: string };
  log(message: string, error: unknown): void;
}

const PING_EVERY_MS = 1_000;
const REPLY_WITHIN_MS = 15_000;
const POLL_MS = 25;
const RETRY_AFTER_MS = 2_000;

interface State extends NodeOptions {
  name: string;
  cli: VarnishCli | null;
  ready: boolean;
  refuses: boolean;
  /** It may have missed a purge: it is emptied before it serves again. */
  missed: boolean;
  closing: AbortController;
}

export function openNode(options: NodeOptions): VarnishNode {
  const { host, port } = options;
  const name = `${host}:${port}`;
  const unknown = { cli: null, ready: false, refuses: false, missed: false };
  const state: State = { ...options, ...unknown, name, closing: new AbortController() };
  const running = keepConnected(state);
  return {
    ...{ name, host, port },
    isReady: () => state.ready,
    suspect: () => void (state.ready = false),
    purge: (zoneId, purge) => purgeNode(state, zoneId, purge),
    async whenReady(milliseconds) {
      const end = Date.now() + milliseconds;
      const isOpen = (): boolean => !state.ready && !state.refuses && !state.closing.signal.aborted;
      while (isOpen() && Date.now() < end) await sleep(POLL_MS);
      return state.ready;
    },
    isRefusing: () => state.refuses,
    async close() {
      state.closing.abort();
      state.cli?.close();
      await running;
    },
  };
}

async function purgeNode(state: State, zoneId: string, purge: PurgeSpec): Promise<void> {
  const { cli, name, ready } = state;
  try {
    if (!cli || !ready) throw new Error('out of service');
    for (const ban of bansOf(zoneId, purge)) await cli.run('ban', ...ban);
  } catch (error) {
    state.missed = true;
    if (ready) state.log(`the cache ${name} did not take a purge`, error);
    throw new DriverError('transient', `The cache ${name} can't be reached.`, RETRY_AFTER_MS);
  }
}

async function keepConnected(state: State): Promise<void> {
  const { signal } = state.closing;
  let isReported = false;
  while (!signal.aborted) {
    try {
      await check(state);
      isReported = false;
    } catch (error) {
      state.ready = false;
      state.cli?.close();
      state.cli = null;
      if (!isReported && !signal.aborted) state.log(`the cache ${state.name} is out of service`, error);
      isReported = true;
    }
    await sleep(PING_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function check(state: State): Promise<void> {
  const { host, cliPort: port, secret } = state;
  state.cli ??= await connectCli({ host, port }, secret, REPLY_WITHIN_MS);
  await state.cli.run('ping');
  const loaded = await loadedVcls(state.cli);
  if (!loaded.some(({ name, status }) => name === state.vcl.name && status === 'active'))
    await load(state.cli, state.vcl, loaded).catch((error: unknown) => {
      state.refuses = error instanceof VarnishError;
      throw error;
    });
  state.refuses = false;
  if (state.missed) await state.cli.run('ban', 'obj.status', '!=', '0');
  state.missed = false;
  state.ready = true;
}

interface LoadedVcl {
  name: string;
  status: string;
}

async function loadedVcls(cli: VarnishCli): Promise<LoadedVcl[]> {
  const listed = JSON.parse(await cli.run('vcl.list', '-j')) as unknown[];
  return listed.filter((one): one is LoadedVcl => typeof one === 'object' && one !== null && 'name' in one);
}

/** Switches the configuration between requests: one that does not compile changes nothing. */
async function load(cli: VarnishCli, { name, text }: State['vcl'], loaded: readonly LoadedVcl[]): Promise<void> {
  if (!loaded.some((one) => one.name === name)) await cli.run('vcl.inline', name, text);
  await cli.run('vcl.use', name);
  // A varnishd without an initial configuration waits to be started.
  if (!(await cli.run('status')).includes('running')) await cli.run('start');
  for (const old of loaded)
    if (old.name !== name && old.name.startsWith(VCL_PREFIX)) await cli.run('vcl.discard', old.name).catch(() => '');
}
