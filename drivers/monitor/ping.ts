// ICMP echo check with the ping of iputils: Node.js has no ICMP sockets, which would also require additional
// privileges.
import { normalHost } from '../../core/protocols/addresses';
import type { UptimeCheck } from '../../core/protocols/checks';
import { CommandFailed, run } from '../../core/process/command';
import { DriverError } from '../../core/driver';
import type { ProbeResponse } from '../monitor';
import type { Outbound } from '../../core/outbound';
import { OutboundError, timed, type Trace } from '../../core/outbound/trace';
import { abortable } from '../../core/outbound/socket';

export async function checkPing(
  { names, requireAllowed }: Outbound,
  { target, timeout_seconds }: UptimeCheck,
  trace: Trace,
  signal: AbortSignal,
): Promise<ProbeResponse> {
  const host = normalHost(target) ?? target;
  const addresses = await timed(trace, 'dns_ms', () => abortable(signal, names.resolve(host)));
  requireAllowed(host, addresses);
  const args = ['-n', '-q', '-c', '1', '-W', String(timeout_seconds), addresses[0] as string];
  const context = { signal, deadline: Date.now() + timeout_seconds * 1000 };
  await timed(trace, 'connect_ms', () => run('ping', args, context).catch(explain));
  return { status_code: null, error: null };
}

function explain(error: unknown): never {
  if (error instanceof CommandFailed && error.code === 1)
    throw new OutboundError('connect', 'No echo reply was received.', true);
  if (error instanceof DriverError && error.reason === 'unsupported')
    throw new OutboundError('connect', 'This host cannot send pings: the package iputils-ping is not installed.', true);
  if (error instanceof CommandFailed) throw new OutboundError('connect', 'The ping could not be sent.', true);
  throw error;
}
