// The answering side of the name server: sockets on a port, and zones in memory. It runs in the process of the driver,
// or in a child process (process/client.ts).
import type { DnsQuestions } from '../../core/protocols/dns';
import type { CountersByZone } from './nameserver';
import { openAliases } from './aliases';
import { openResponder, type TransferRights } from './responder';
import { openSockets, type NameserverSockets } from './process/sockets';

export interface AnsweringOptions {
  /** Addresses to listen on. */
  addresses: string[];
  /** Responses per second to one client network without a cookie. */
  responsesPerSecond: number;
  transfers: TransferRights;
  /** Secret of DNS cookies, the same for a process and its successor. */
  cookieSecret: Buffer;
}

/** A zone as sent to the answering process. */
export interface ZoneText {
  id: string;
  name: string;
  /** JSON of its `ZoneSpec`. */
  text: string;
}

export interface Answering {
  put(zones: ZoneText[]): Promise<void>;
  remove(id: string): Promise<void>;
  /**
   * Idempotent.
   * @param ports tried in this order. @returns the bound port. @throws the errno of the last one
   */
  listen(ports: number[]): Promise<number>;
  /** null while no port is bound. */
  port(): number | null;
  takeCounters(): Promise<CountersByZone>;
  close(): Promise<void>;
}

export function openAnswering(options: AnsweringOptions, questions: Pick<DnsQuestions, 'a' | 'aaaa'>): Answering {
  const responder = openResponder({ ...options, lookUpAlias: openAliases(questions) });
  let sockets: NameserverSockets | null = null;
  let bound: number | null = null;
  return {
    async put(zones) {
      for (const { id, name, text } of zones) responder.zones.put(id, name, text);
    },
    async remove(id) {
      responder.zones.remove(id);
    },
    async listen(ports) {
      if (bound !== null) return bound;
      let failure: unknown = new Error('no port to listen on');
      for (const port of ports) {
        try {
          sockets = await openSockets(port, options.addresses, responder);
          bound = port;
          return port;
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    },
    port: () => bound,
    takeCounters: async () => responder.takeCounters(),
    async close() {
      await sockets?.close();
    },
  };
}
