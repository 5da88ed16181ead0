// Merges the metrics of several processes.
import { AggregatorRegistry, type Registry } from 'prom-client';

/** Metrics in the JSON form of prom-client: values, and how they are aggregated. */
export type MetricList = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

interface MetricSum {
  /**
   * Keeps the last reported counters of a process that has exited: Prometheus takes a decreasing counter for a counter
   * reset.
   */
  keep(last: MetricList): void;
  /** The sum of the running processes and of the kept counters. */
  of(running: MetricList[]): Registry;
}

const COUNTING = new Set(['counter', 'histogram']);

export function metricSum(): MetricSum {
  let ended: object = [];
  return {
    keep(last) {
      // As strings: the names in prom-client's types are numbers.
      const counted = last.filter(({ type }) => COUNTING.has(String(type)));
      ended = AggregatorRegistry.aggregate([ended, counted]).getMetricsAsArray();
    },
    of: (running) => AggregatorRegistry.aggregate([...running, ended]),
  };
}
