/* script.c - the only script of the page. Without it the page stays readable, and has no buttons.
 *
 * It makes a button of each head of a table, which sorts the rows by that column (numbers by value, dashes
 * last). Others save tables as CSV, figures as SVG with the style of the page, and the numbers of figures as
 * CSV. At most 1,500 bytes. */
#include "tools/page/page.h"

const char page_script[] =
    "(()=>{let d=document,all=(q,e=d)=>[...e.querySelectorAll(q)],raw=c=>c.textContent,button=(e,t,f)=>{"
    "let b=d.createElement('button');b.type='button';b.textContent=t;b.onclick=f;e.append(b)},save=(n,"
    "t)=>{let a=d.createElement('a');a.href=URL.createObjectURL(new Blob(t));a.download=n;a.click()},"
    "plain=c=>raw(c).replace(/,/g,''),field=c=>c.matches('td:not(.words)')?plain(c):/[\","
    "]/.test(raw(c))?'\"'+raw(c).replace(/\"/g,'\"\"')+'\"':raw(c);d.documentElement.className='js';"
    "all('table').map((t,k)=>{all('thead th',t).map((h,i)=>{let n=raw(h);h.textContent='';button(h,n,"
    "()=>{let s=h.ariaSort=='ascending'?-1:1,key=r=>parseFloat(plain(r.cells[i]).replace('∞',"
    "'Infinity'));all('th',t.tHead).map(o=>o.removeAttribute('aria-sort'));h.setAttribute('aria-sort',"
    "s>0?'ascending':'descending');t.tBodies[0].append(...all('tbody tr',t).sort((a,b)=>{let x=key(a),"
    "y=key(b);return x!=x||y!=y?(x!=x)-"
    "(y!=y)||s*raw(a.cells[i]).localeCompare(raw(b.cells[i])):s*(y>x?-1:x>y)}))})});"
    "button(t.parentNode,'CSV',()=>save('table'+(k+1)+'.csv',all('tr',"
    "t).map(r=>[...r.cells].map(field)+'\\n')))});all('figure').map((f,k)=>{let n='figure'+(k+1);"
    "button(f,'SVG',()=>{let c=all('svg',f)[0].cloneNode(true);let s=d.createElementNS(c.namespaceURI,"
    "'style');s.textContent=raw(all('style')[0]);c.prepend(s,all('defs')[0].cloneNode(true));"
    "c.style.background='var(--ground)';save(n+'.svg',[new XMLSerializer().serializeToString(c)])});"
    "button(f,'CSV',()=>save(n+'.csv',[all('data',f)[0].value.replace(/;/g,'\\n')+'\\n']))})})()\n";
