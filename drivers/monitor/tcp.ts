import type { UptimeCheck } from '../../core/checks';
import { parseHostPort } from '../../core/addresses';
import type { ProbeResponse } from '../monitor';
import type { Outbound } from '../outbound';
import { OutboundError, type Trace } from '../outbound/trace';
import { openSocket } from '../outbound/socket';

/** A check that connects, and closes again. */
export async function checkTcp(
  outbound: Outbound,
  { target }: UptimeCheck,
  trace: Trace,
  signal: AbortSignal,
): Promise<ProbeResponse> {
  const destination = parseHostPort(target);
  if (!destination) throw new OutboundError('dns', 'The target is not host:port.', false);
  const socket = await openSocket(outbound, destination, trace, signal);
  socket.destroy();
  return { status_code: null, error: null };
}
