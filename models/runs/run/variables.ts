// Variables of a run beside those of its release. Their values are sealed; only the host opens them.
import type { SecretBox } from '../../../core/secrets';
import { sealedColumns } from '../../base/sealed_columns';

/** null where there are none. */
export function sealVariables(
  secrets: SecretBox,
  runId: string,
  variables: readonly { key: string; value: string }[],
): string | null {
  if (!variables.length) return null;
  const values = Object.fromEntries(variables.map(({ key, value }) => [key, value]));
  return secrets.seal(JSON.stringify(values), sealedColumns.runVariables.contextOf(runId));
}

/** The values by name. */
export function openVariables(
  secrets: SecretBox,
  { id, variables }: { id: string; variables: string | null },
): Record<string, string> {
  if (variables === null) return {};
  return JSON.parse(secrets.open(variables, sealedColumns.runVariables.contextOf(id))) as Record<string, string>;
}
