import { problemAt, type FieldProps } from './field_props';
import { Prose } from './prose';
import { words } from './words';

/** Several values of an enum. */
export function Choices({ table, field, path, draft, error, changed }: FieldProps) {
  const chosen = Array.isArray(draft) ? draft : [];
  const problem = problemAt(error, path);
  const toggle = (value: string, isOn: boolean): void =>
    changed(isOn ? [...chosen, value] : chosen.filter((one) => one !== value));
  return (
    <fieldset class="object">
      <legend>{`${words(field.name)}${field.required ? '' : ' (optional)'}`}</legend>
      {(problem ?? field.description) && (
        <small class={problem ? 'problem' : undefined}>{problem ?? <Prose text={field.description ?? ''} />}</small>
      )}
      {(table.enums[field.type] ?? []).map(({ value }) => (
        <label key={value} class="check">
          <input
            type="checkbox"
            name={path}
            checked={chosen.includes(value)}
            onChange={(event) => toggle(value, event.currentTarget.checked)}
          />
          {value.replace(/_/g, ' ')}
        </label>
      ))}
    </fieldset>
  );
}
