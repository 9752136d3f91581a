import { render } from 'preact';
import { App } from './app.tsx';

const root = document.getElementById('console');
if (root !== null) {
  const { api = '', title = '', brand = '' } = root.dataset;
  const base = new URL(api, location.origin).href.replace(/\/$/, '');
  render(<App base={base} title={title} brand={brand} />, root);
}
