// Messages between the first process and those that serve the API, beside the connections that node hands on.
import type { Registry } from 'prom-client';

/** As prom-client writes them for others: values, and how they are summed up. */
export type MetricList = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

export type FromWeb =
  | { kind: 'serving'; port: number }
  /** It can't start: one line for the operator. */
  | { kind: 'failed'; reason: string }
  | { kind: 'metrics'; turn: number; list: MetricList }
  | Attempt;

export type ToWeb = { kind: 'metrics'; turn: number } | Attempt;

/** A failed authentication or log-in: counted by all. */
export interface Attempt {
  kind: 'attempt';
  bucket: string;
}
