// Metrics of several processes as those of one.
import { AggregatorRegistry, type Registry } from 'prom-client';

/** As prom-client writes them for others: values, and how they are summed up. */
export type MetricList = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

interface MetricSum {
  /**
   * Keeps what a process that has ended had counted when it was last asked: Prometheus takes a counter that falls for
   * one begun anew.
   */
  keep(last: MetricList): void;
  /** Of the processes that run, and what was kept. */
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
