// Renders the subset of Markdown that descriptions use as HTML.
import { escapeHtml } from '../../core/protocols/html';

/** Paragraphs, lists, `code`, **bold** and [links](address). */
export function markdown(text: string): string {
  return text
    .split(/\n{2,}/)
    .map((block) => {
      const items = block.split(/^[-*] /m);
      const [before = '', ...entries] = items;
      const list = entries.map((entry) => `<li>${inline(entry)}`).join('');
      return (before.trim() && `<p>${inline(before)}</p>`) + (list && `<ul>${list}</ul>`);
    })
    .join('');
}

/** Inline Markdown: `code`, **bold** and [links](address). */
export function inline(text: string): string {
  return escapeHtml(text.trim())
    .replace(/`([^`]+)`/g, '<code>$1</code>')
    .replace(/\*\*([^*]+)\*\*/g, '<b>$1</b>')
    .replace(/\[([^\]]+)\]\(((?:https?:\/\/|\/)[^)\s]+)\)/g, '<a href="$2">$1</a>');
}
