// Rules by which a copy replaces values. What the catalog of the copy says of them is found when it is there
// (drivers/database/masks/mask.ts).
import { isKeyValue } from '../../core/catalog/catalogs';
import { problem, validationFailed, type FieldError } from '../../core/errors';
import { expressionMistake, type MaskRule } from '../../core/mask_rules';
import type { DatabaseMaskRuleInput } from '../../schema/types';

interface Masked {
  engine: string;
  on_cluster: boolean;
}

/**
 * The rules as they are kept. `path`: of the list in the request.
 * @throws validation_failed, engine_feature_unsupported for a server that is not masked
 */
export function requireMask(
  { engine, on_cluster }: Masked,
  rules: readonly DatabaseMaskRuleInput[],
  path: string,
): MaskRule[] {
  const refused = isKeyValue(engine)
    ? `${engine} has no columns, so its values cannot be masked. Copy it without a mask, or leave it empty.`
    : on_cluster
      ? 'A database in the cluster cannot be masked.'
      : null;
  if (refused !== null) throw problem('engine_feature_unsupported', refused, { engine, feature: 'mask' });
  const kept = rules.map(({ table, column, rule, value }) => ({ table, column, rule, value: value ?? null }));
  const mistakes = kept.flatMap((rule, index) =>
    mistakesOf(engine, rule, kept.slice(0, index)).map((one) => ({ ...one, field: `${path}.${index}.${one.field}` })),
  );
  if (mistakes.length) throw validationFailed(mistakes);
  return kept;
}

function mistakesOf(engine: string, rule: MaskRule, before: readonly MaskRule[]): FieldError[] {
  const { table, column, value } = rule;
  if (before.some((one) => one.table === table && one.column === column))
    return [{ field: 'column', code: 'duplicate', detail: 'has a rule already' }];
  const takesValue = rule.rule === 'constant' || rule.rule === 'expression';
  if (takesValue && value === null) return [{ field: 'value', code: 'required', detail: `is needed by ${rule.rule}` }];
  if (!takesValue && value !== null)
    return [{ field: 'value', code: 'depends_on', detail: 'is for the rules constant and expression alone' }];
  if (rule.rule !== 'expression' || value === null) return [];
  const mistake = expressionMistake(value, engine === 'mariadb' ? 'mysql' : 'postgresql');
  return mistake === null ? [] : [{ field: 'value', code: 'invalid_format', detail: `must ${mistake}` }];
}
