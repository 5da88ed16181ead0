// A field that looks for something in a list of the installation.
import { useState } from 'preact/hooks';
import { Field } from '../../parts/form';

export function SearchField({ label, search }: { label: string; search(text: string): void }) {
  const [text, setText] = useState('');
  return (
    <form
      class="inline form-line"
      onSubmit={(event) => {
        event.preventDefault();
        search(text.trim());
      }}
    >
      <Field label={label} name="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <button type="submit">Find</button>
    </form>
  );
}
