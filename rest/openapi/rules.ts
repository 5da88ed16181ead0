// @rule in words: JSON Schema can't say "given and not null" without making every client type a puzzle.
import type { GraphQLInputObjectType } from 'graphql';
import { directivesOf } from '../../contract/directives';
import type { DocumentBuilder } from './builder';

export interface Rule {
  exactlyOne?: string[];
  atMostOne?: string[];
  notEmpty?: boolean;
  field?: string;
  needs?: string;
  value?: string;
}

export function rulesOf(builder: DocumentBuilder, type: GraphQLInputObjectType): Rule[] {
  return directivesOf(builder.schema, type, 'rule') as Rule[];
}

export function isNotEmpty(builder: DocumentBuilder, type: GraphQLInputObjectType): boolean {
  return rulesOf(builder, type).some((rule) => rule.notEmpty);
}

/** One sentence per rule. */
export function describeRules(builder: DocumentBuilder, type: GraphQLInputObjectType): string[] {
  return rulesOf(builder, type).map((rule) => {
    if (rule.exactlyOne) return `Exactly one of ${listed(rule.exactlyOne)} must be given.`;
    if (rule.atMostOne) return `At most one of ${listed(rule.atMostOne)} may be given.`;
    if (rule.notEmpty) return 'At least one field must be given.';
    return `\`${rule.field}\` needs \`${rule.needs}\`${rule.value === undefined ? '' : ` to be \`${rule.value}\``}.`;
  });
}

function listed(names: string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}
