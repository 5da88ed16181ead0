// Looks at all times now and then. One timer for everything costs less than one per request.
import { giveUpConnecting, type Exchange } from './exchange';
import type { Gate } from './gate';
import { pageOf } from './pages';
import { giveUp } from './response';
import { tidyTable } from './table';
import { endTunnel } from './tunnel';

export function sweep(gate: Gate): void {
  const now = performance.now();
  for (const exchange of gate.running) review(exchange, now - exchange.touchedMs);
  for (const tunnel of gate.tunnels) if (now - tunnel.touchedMs > gate.limits.tunnelIdleMs) endTunnel(tunnel);
  tidyTable(gate.table, now);
}

// Whose turn it is decides whose fault the silence is.
function review(exchange: Exchange, silentMs: number): void {
  const { limits } = exchange.gate;
  const { response, request, line } = exchange;
  if (exchange.ended || response.writableNeedDrain)
    return silentMs > limits.clientIdleMs ? endSlow(exchange) : undefined;
  if (line === null) return; // its certificate is looked up, or it is about to close
  if (!line.connected) return silentMs > limits.connectMs ? giveUpConnecting(exchange) : undefined;
  if (exchange.body === 'flowing' && !request.isPaused() && !exchange.answered)
    return silentMs > limits.clientIdleMs ? giveUp(exchange, pageOf('slow_client')) : undefined;
  if (silentMs > exchange.site.route.request_timeout_ms) giveUp(exchange, pageOf('timeout'));
}

function endSlow(exchange: Exchange): void {
  exchange.reason ??= 'slow_client';
  exchange.response.destroy();
}
