import type { UptimeCheck } from '../../core/protocols/checks';
import { parseHostPort } from '../../core/protocols/addresses';
import type { ProbeResponse } from '../monitor';
import type { Outbound } from '../../core/outbound';
import { OutboundError, type Trace } from '../../core/outbound/trace';
import { openSocket } from '../../core/outbound/socket';

/** TCP check: connects and closes. */
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
