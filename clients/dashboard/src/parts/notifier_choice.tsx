// Notifiers to choose among, as a list of checkboxes.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useAction } from '../api/use_query';
import { Form, Problem, Submit } from './form';

interface NotifierChoiceProps<N> {
  notifiers: readonly N[];
  /** Ids. */
  chosen: readonly string[];
  save(ids: readonly string[]): Promise<void>;
  /** Behind the name. */
  about(notifier: N): ComponentChildren;
}

export function NotifierChoice<N extends { id: string; name: string }>(props: NotifierChoiceProps<N>) {
  const { notifiers, chosen, save, about } = props;
  const [ids, setIds] = useState(chosen);
  const action = useAction(() => save(ids));
  const toggle = (id: string): void =>
    setIds((before) => (before.includes(id) ? before.filter((one) => one !== id) : [...before, id]));
  return (
    <Form action={action}>
      <fieldset>
        <legend class="off-screen">Notifiers</legend>
        <ul class="notifiers">
          {notifiers.map((notifier) => (
            <li key={notifier.id}>
              <label class="check">
                <input
                  type="checkbox"
                  name={notifier.id}
                  checked={ids.includes(notifier.id)}
                  onChange={() => toggle(notifier.id)}
                />
                {notifier.name}
              </label>
              {about(notifier)}
            </li>
          ))}
        </ul>
      </fieldset>
      <Problem error={action.error} />
      <footer class="actions">
        <Submit action={action}>Save notifiers</Submit>
      </footer>
    </Form>
  );
}
