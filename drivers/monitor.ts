// Uptime checks from this host: http, tcp, ping. Each uses a new connection, limited in time and size.
import type { CheckOutcome, UptimeCheck } from '../core/protocols/checks';

/** Result of a check, apart from its trace. `error`: null for a success. */
export interface ProbeResponse {
  status_code: number | null;
  error: string | null;
}

export interface Monitor {
  /** Never throws for failures of the target; rejects when the signal is aborted. */
  check(check: UptimeCheck, signal?: AbortSignal): Promise<CheckOutcome>;
}
