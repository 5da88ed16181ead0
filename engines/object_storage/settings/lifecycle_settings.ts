// Lifecycle rules over S3, limited to the features of the API.
import { formats } from '../../../core/formats/formats';
import type { LifecycleRule } from '../object_storage';
import { changeBucketSettings } from './change_settings';
import { requireGranted, type Exchange } from '../endpoint_context';
import { S3Error } from '../errors';
import { sendXml } from '../respond';
import { receiveText } from '../upload';
import {
  childElement,
  childElements,
  parseXml,
  elementText,
  requireMembers,
  type XmlElements,
  type XmlNode,
} from '../xml';

const XML_BYTES_MAX = 64 * 1024;
/** About transitions, of which there are none. Amazon sends its default, and Terraform waits for it. */
const TRANSITION_SIZE = 'x-amz-transition-default-minimum-object-size';
const RULES_MAX = 100;
const DAYS_MAX = 36_500;
/** Supported members of a rule. */
const MEMBERS = {
  Filter: 'Prefix',
  Expiration: 'Days',
  NoncurrentVersionExpiration: 'NoncurrentDays',
  AbortIncompleteMultipartUpload: 'DaysAfterInitiation',
};

export function getLifecycle(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetLifecycleConfiguration', '');
  const { lifecycle } = exchange.bucket;
  if (!lifecycle.length) throw new S3Error('NoSuchLifecycleConfiguration');
  sendXml(exchange, 'LifecycleConfiguration', lifecycleElements(lifecycle), {
    [TRANSITION_SIZE]: 'all_storage_classes_128K',
  });
}

export function lifecycleElements(rules: readonly LifecycleRule[]): XmlElements {
  return {
    Rule: rules.map((rule): XmlElements => ({
      ...(rule.prefix_of_rule
        ? { Prefix: rule.prefix }
        : { Filter: rule.filter_is_empty ? {} : { Prefix: rule.prefix } }),
      ...{ ID: rule.id, Status: rule.enabled ? 'Enabled' : 'Disabled' },
      Expiration: rule.expire_after_days && { Days: rule.expire_after_days },
      NoncurrentVersionExpiration: rule.expire_noncurrent_after_days && {
        NoncurrentDays: rule.expire_noncurrent_after_days,
      },
      AbortIncompleteMultipartUpload: rule.abort_incomplete_uploads_after_days && {
        DaysAfterInitiation: rule.abort_incomplete_uploads_after_days,
      },
    })),
  };
}

export function putLifecycle(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:PutLifecycleConfiguration', async () => {
    const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'LifecycleConfiguration');
    requireMembers(document, ['Rule'], ['Rule']);
    const lifecycle = requireRules(childElements(document, 'Rule')).map(lifecycleRule);
    if (new Set(lifecycle.map(({ id }) => id)).size < lifecycle.length)
      throw new S3Error('InvalidArgument', 'Two rules have the same ID.');
    return { lifecycle };
  });
}

export function lifecycleRule(node: XmlNode, index: number): LifecycleRule {
  const days = (parent: string, name: string): number | null => {
    const text = elementText(childElement(node, parent), name);
    if (text === undefined) return null;
    if (!/^\d{1,5}$/.test(text) || Number(text) < 1 || Number(text) > DAYS_MAX)
      throw new S3Error('InvalidArgument', `${name} is not a number of days.`);
    return Number(text);
  };
  requireKnown(node);
  const filter = childElement(node, 'Filter');
  if (filter && childElement(node, 'Prefix'))
    throw new S3Error('MalformedXML', 'A rule may have its prefix in its filter or beside it, but not in both places.');
  const rule = {
    ...{ id: elementText(node, 'ID') || `rule-${index + 1}`, enabled: elementText(node, 'Status') === 'Enabled' },
    prefix: elementText(filter, 'Prefix') ?? elementText(node, 'Prefix') ?? '',
    ...(!filter && { prefix_of_rule: true as const }),
    ...(filter && !filter.children.length && { filter_is_empty: true as const }),
    expire_after_days: days('Expiration', 'Days'),
    expire_noncurrent_after_days: days('NoncurrentVersionExpiration', 'NoncurrentDays'),
    abort_incomplete_uploads_after_days: days('AbortIncompleteMultipartUpload', 'DaysAfterInitiation'),
  };
  if (
    (rule.expire_after_days ?? rule.expire_noncurrent_after_days ?? rule.abort_incomplete_uploads_after_days) === null
  )
    throw new S3Error('InvalidRequest', 'A rule needs at least one age.');
  if (formats.single_line(rule.id + rule.prefix) === null || rule.id.length > 255) throw new S3Error('InvalidArgument');
  return rule;
}

/**
 * Transitions, dates, tags, sizes and numbers of versions are not supported: ignoring them would remove more objects.
 * @throws S3Error NotImplemented, MalformedXML
 */
function requireKnown(node: XmlNode): void {
  requireMembers(node, ['ID', 'Status', 'Prefix', ...Object.keys(MEMBERS)]);
  for (const [name, member] of Object.entries(MEMBERS)) {
    const child = childElement(node, name);
    if (child) requireMembers(child, [member]);
  }
  const status = elementText(node, 'Status');
  if (status !== 'Enabled' && status !== 'Disabled') throw new S3Error('MalformedXML');
}

export function requireRules(rules: XmlNode[]): XmlNode[] {
  if (!rules.length || rules.length > RULES_MAX) throw new S3Error('MalformedXML');
  return rules;
}
