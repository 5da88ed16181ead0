// Ports that the host forwards into networks of root for public endpoints: a note for each unit,
// <networks>/.forwarded/<unit id>, so that the rules can be reloaded. The note is written before the rule is added, and
// removed after it.
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { DriverContext } from '../../core/driver';
import type { ForwardedPort, PortForwards, PortLocations } from '../network';
import type { ForwardRule } from './forward_rules';
import type { HostTable } from './host_table';
import { readNetworkNote, writeNetworkNote } from './network_directory';

/** Address of a network; null: the network does not exist. */
type AddressOf = (network: string) => string | null;

export interface RootForwards extends PortForwards {
  /** Removes all forwards into a network that was removed. */
  removeInto(network: string, ctx: DriverContext): Promise<void>;
}

/** `networks`: the directory of the networks. */
export function openPortForwards(networks: string, table: HostTable, addressOf: AddressOf): RootForwards {
  const directory = directoryIn(networks);
  const remove = async (unitId: string, found: ForwardedPort, ctx: DriverContext): Promise<void> => {
    await writeNetworkNote(directory, unitId, unknown(found));
    await table.removeForward(found.port, ctx);
    await rm(path.join(directory, unitId), { force: true });
  };
  return {
    find: (unitId) => noteOf(directory, unitId),
    async set(unitId, wanted, ctx) {
      const found = await noteOf(directory, unitId);
      const isPlaced = found?.port === wanted?.port && found?.network === wanted?.network;
      if (found !== null && !isPlaced) await remove(unitId, found, ctx);
      const rule = wanted && ruleOf(wanted, addressOf);
      if (wanted === null || rule === null) return;
      await writeNetworkNote(directory, unitId, JSON.stringify(wanted));
      await table.addForward(rule, ctx).catch(async (error: unknown) => {
        await writeNetworkNote(directory, unitId, unknown(wanted));
        throw error;
      });
    },
    publish: (ports, ctx) => table.publish(addressesOf(ports), ctx),
    async removeInto(network, ctx) {
      for (const [unitId, found] of await notesIn(directory))
        if (found.network === network) await remove(unitId, found, ctx);
    },
  };
}

/** Nothing is loaded for it, and it differs from whatever is wanted: the rule may be there, or not. */
function unknown(port: ForwardedPort): string {
  return JSON.stringify({ ...port, sources: [] });
}

/** Builds the forward rules from the notes. */
export async function forwardRules(networks: string, addressOf: AddressOf): Promise<ForwardRule[]> {
  return (await notesIn(directoryIn(networks))).flatMap(([, port]) => ruleOf(port, addressOf) ?? []);
}

function directoryIn(networks: string): string {
  return path.join(networks, '.forwarded');
}

async function notesIn(directory: string): Promise<[unitId: string, port: ForwardedPort][]> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => !name.endsWith('.new'));
  const notes = await Promise.all(names.map(async (name) => [name, await noteOf(directory, name)] as const));
  return notes.flatMap(([name, port]) => (port === null ? [] : [[name, port]]));
}

async function noteOf(directory: string, unitId: string): Promise<ForwardedPort | null> {
  const text = await readNetworkNote(directory, unitId);
  return text === null ? null : (JSON.parse(text) as ForwardedPort);
}

function ruleOf({ network, ...rest }: ForwardedPort, addressOf: AddressOf): ForwardRule | null {
  const to = addressOf(network);
  return to === null || !rest.sources.length ? null : { ...rest, to };
}

function addressesOf(ports: PortLocations): Map<number, string> {
  const all = [...ports].flatMap(([port, location]) =>
    'address' in location ? [[port, location.address] as const] : [],
  );
  return new Map(all);
}
