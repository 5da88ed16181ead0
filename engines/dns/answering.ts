// What answers: sockets on a port, and the zones in memory. In the process of the driver, or in others (processes.ts).
import type { DnsQuestions } from '../../core/protocols/dns';
import type { CountersByZone } from './nameserver';
import { openAliases } from './aliases';
import { openResponder, type TransferRights } from './responder';
import { openSockets, type NameserverSockets } from './process/sockets';

export interface AnsweringOptions {
  /** Addresses to listen on. */
  addresses: string[];
  /** Answers a second for one network of clients without a cookie. */
  responsesPerSecond: number;
  transfers: TransferRights;
  /** Of DNS cookies, the same in all processes. */
  cookieSecret: Buffer;
}

/** A zone on its way to where it is answered from. */
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
   * A second call changes nothing.
   * @param ports to try, in this order. @returns the one that it is. @throws the errno of the last one
   */
  listen(ports: number[]): Promise<number>;
  /** null while it listens on none. */
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
