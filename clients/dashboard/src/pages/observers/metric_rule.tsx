import { ResourceLink } from '../../parts/resource_name';

interface MetricRuleProps {
  projectId: string;
  metric: string;
  resource_id: string;
  resource_type: string;
  operator: string;
  threshold: number;
}

const SIGNS: Record<string, string> = { gt: '>', gte: '≥', lt: '<', lte: '≤' };

/** `cpu percent of shop > 90`. */
export function MetricRule({ projectId, metric, operator, threshold, ...resource }: MetricRuleProps) {
  return (
    <>
      {metric.replace(/_/g, ' ')} of{' '}
      <ResourceLink projectId={projectId} id={resource.resource_id} kind={resource.resource_type} />{' '}
      {SIGNS[operator] ?? operator} {threshold}
    </>
  );
}
