// The trace of an outgoing request: the phase it has reached and its timings, also after a failure.
import type { CheckTimings } from '../protocols/checks';

type Phase = 'dns' | 'connect' | 'tls' | 'first_byte' | 'body';

/** Failure of an outgoing request; the message is a sentence for users. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError';

  /** @param unreachable no packet of the remote side arrived: the cause may be our own network */
  constructor(
    readonly phase: Phase,
    message: string,
    readonly unreachable: boolean,
  ) {
    super(message);
  }
}

/** A host that leads to an address which may not be connected to. */
export class ForbiddenAddress extends OutboundError {
  constructor(message: string) {
    super('dns', message, false);
  }
}

/** Phase, timings and certificate of an attempt that runs or has failed. */
export interface Trace {
  phase: Phase;
  timings: CheckTimings;
  /** When the chain of the target's certificate ends. */
  certificate_expires_at: string | null;
  /** Name of the authority whose certificate ends first; null: that of the target does. */
  certificate_authority: string | null;
}

export function newTrace(): Trace {
  return {
    phase: 'dns',
    timings: { dns_ms: null, connect_ms: null, tls_ms: null, first_byte_ms: null },
    certificate_expires_at: null,
    certificate_authority: null,
  };
}

/** Runs one phase of the attempt and adds its duration to the timings. */
export async function timed<T>(trace: Trace, part: keyof CheckTimings, work: () => Promise<T>): Promise<T> {
  trace.phase = part.replace(/_ms$/, '') as Phase;
  const startedAt = performance.now();
  const result = await work();
  trace.timings[part] = milliseconds((trace.timings[part] ?? 0) + performance.now() - startedAt);
  return result;
}

/** Rounds to a tenth of a millisecond. */
export function milliseconds(ms: number): number {
  return Math.round(ms * 10) / 10;
}

const WHILE: Record<Phase, string> = {
  dns: 'while the host name was resolved',
  connect: 'while the connection was made',
  tls: 'during the TLS handshake',
  first_byte: 'before the response began',
  body: 'before the response was complete',
};

/** The error of an attempt that has timed out. */
export function timeoutError({ phase }: Trace, seconds: number): OutboundError {
  const unreachable = phase === 'dns' || phase === 'connect';
  return new OutboundError(phase, `The time limit of ${seconds} s was reached ${WHILE[phase]}.`, unreachable);
}
