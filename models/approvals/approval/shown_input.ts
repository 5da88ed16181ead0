// What a call is made with, as the person who approves it sees it.
import type { Context } from '../../../core/context';
import type { ApprovalArgument } from '../../../schema/types';
import { sealedColumns } from '../../base/sealed_columns';
import type { Approval } from '../approval';

const SECRET = /password|passphrase|secret|token|credential|private_key|api_key/i;
const VALUE_CHARACTERS_MAX = 500;

/** Each value by its path; values that look like secrets are masked. */
export function shownInput({ secrets }: Pick<Context, 'secrets'>, approval: Approval): ApprovalArgument[] {
  const text = secrets.open(approval.sealed_input, sealedColumns.approvalInput.contextOf(approval.id));
  return flatten(JSON.parse(text) as Record<string, unknown>, '');
}

function flatten(values: Record<string, unknown>, above: string): ApprovalArgument[] {
  return Object.entries(values).flatMap(([key, value]) => {
    const name = above ? `${above}.${key}` : key;
    if (value !== null && typeof value === 'object') {
      if (Object.keys(value).length) return flatten(value as Record<string, unknown>, name);
    }
    return [{ name, value: SECRET.test(name) && value !== null ? '"***"' : shorten(JSON.stringify(value)) }];
  });
}

function shorten(text: string): string {
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text;
}
