// Bucket settings as XML, and their comparison with those of the gateway.
import {
  corsElements,
  corsRule,
  lifecycleElements,
  lifecycleRule,
  childElements,
  parseXml,
  elementText,
  xmlDocument,
  type BucketSpec,
  type CorsRule,
} from '../../engines/object_storage';
import type { Answer } from './api';
import type { AwsPolicy } from './policy';

export interface Setting {
  /** Query parameter. */
  name: 'versioning' | 'policy' | 'cors' | 'lifecycle';
  /** null: remove the setting. */
  body: string | null;
  isUpToDate(answer: Answer): boolean;
}

/** The independent settings of a bucket. */
export function rgwSettings(spec: BucketSpec, policy: AwsPolicy): Setting[] {
  return [versioning(spec), policySetting(policy), cors(spec.cors), lifecycle(spec.lifecycle)];
}

/** Once enabled, versioning can only be suspended. */
function versioning({ versioning: isOn }: BucketSpec): Setting {
  return {
    name: 'versioning',
    body: xmlDocument('VersioningConfiguration', { Status: isOn ? 'Enabled' : 'Suspended' }),
    isUpToDate: ({ text }) => (elementText(parseXml(text, 'VersioningConfiguration'), 'Status') === 'Enabled') === isOn,
  };
}

function policySetting(policy: AwsPolicy): Setting {
  const body = JSON.stringify(policy);
  return { name: 'policy', body, isUpToDate: ({ status, text }) => status === 200 && text === body };
}

function cors(rules: CorsRule[]): Setting {
  return {
    name: 'cors',
    body: rules.length ? xmlDocument('CORSConfiguration', corsElements(rules)) : null,
    isUpToDate: ({ status, text }) => {
      if (status === 404) return !rules.length;
      const found = childElements(parseXml(text, 'CORSConfiguration'), 'CORSRule').map(corsRule);
      return isSame(found.map(sorted), rules.map(sorted));
    },
  };
}

/** The gateway stores sets instead of lists. */
function sorted(rule: CorsRule): CorsRule {
  const { allowed_origins, allowed_methods, allowed_headers, expose_headers, max_age_seconds } = rule;
  const order = (list: string[]): string[] => [...new Set(list)].sort();
  return {
    ...{ allowed_origins: order(allowed_origins), allowed_methods: order(allowed_methods) },
    ...{ allowed_headers: order(allowed_headers), expose_headers: order(expose_headers), max_age_seconds },
  };
}

function lifecycle(rules: BucketSpec['lifecycle']): Setting {
  return {
    name: 'lifecycle',
    body: rules.length ? xmlDocument('LifecycleConfiguration', lifecycleElements(rules)) : null,
    isUpToDate: ({ status, text }) => {
      if (status === 404) return !rules.length;
      const found = childElements(parseXml(text, 'LifecycleConfiguration'), 'Rule').map((node, index) => ({
        ...lifecycleRule(node, index),
        prefix_of_rule: undefined,
        filter_is_empty: undefined,
      }));
      const byId = (list: BucketSpec['lifecycle']) => [...list].sort((a, b) => (a.id < b.id ? -1 : 1));
      return isSame(byId(found), byId(rules));
    },
  };
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a, keysInOrder) === JSON.stringify(b, keysInOrder);
}

function keysInOrder(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
