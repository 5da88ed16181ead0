// Checks of targets from here: http, tcp, ping. Each on a fresh connection, bounded in time and size.
import type { CheckOutcome, UptimeCheck } from '../core/protocols/checks';
import { checkHttp } from './monitor/http';
import { checkPing } from './monitor/ping';
import { checkTcp } from './monitor/tcp';
import type { Outbound } from '../core/outbound';
import { milliseconds, newTrace, OutboundError, timeoutError, type Trace } from '../core/outbound/trace';

/** What a check has heard beyond its trace. `error`: null where all is as expected. */
export interface ProbeResponse {
  status_code: number | null;
  error: string | null;
}

export interface Monitor {
  /** Never throws for what the target did; rejects when the signal is aborted. */
  check(check: UptimeCheck, signal?: AbortSignal): Promise<CheckOutcome>;
}

const CHECKS = { http: checkHttp, tcp: checkTcp, ping: checkPing };

export function openMonitor(outbound: Outbound): Monitor {
  return {
    async check(check, cut) {
      const trace = newTrace();
      const startedAt = performance.now();
      const end = AbortSignal.timeout(check.timeout_seconds * 1000);
      const signal = cut ? AbortSignal.any([end, cut]) : end;
      try {
        const response = await CHECKS[check.check](outbound, check, trace, signal);
        return outcomeOf(trace, response, milliseconds(performance.now() - startedAt));
      } catch (error) {
        if (cut?.aborted) throw error;
        if (signal.aborted) return failureOf(trace, timeoutError(trace, check.timeout_seconds));
        if (error instanceof OutboundError) return failureOf(trace, error);
        throw error;
      }
    },
  };
}

function outcomeOf(trace: Trace, { status_code, error }: ProbeResponse, response_time_ms: number): CheckOutcome {
  const { timings, certificate_expires_at } = trace;
  const status = error === null ? 'pass' : 'fail';
  return {
    status,
    response_time_ms,
    status_code,
    value: null,
    error,
    timings,
    certificate_expires_at,
    unreachable: false,
  };
}

function failureOf(trace: Trace, { message, unreachable }: OutboundError): CheckOutcome {
  const { timings, certificate_expires_at } = trace;
  return {
    ...{ status: 'fail', response_time_ms: null, status_code: null, value: null, error: message },
    ...{ timings, certificate_expires_at, unreachable },
  };
}
