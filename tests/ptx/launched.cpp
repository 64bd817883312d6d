/* launched.cpp - finds and executes the PTX of a launched kernel. The kernel's address has a symbol in the
 * plug-in, and nvcc gives its code the same name.
 *
 * WEFT_EMU_PTX is a folder with NAME.CC.ptx for each cuda/NAME.cu and compute capability CC. WEFT_EMU_PTX_LOG
 * is a file; the name of each interpreted kernel is appended. */
#include <dlfcn.h>
#include <elf.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
#include "tests/ptx/launched.h"
#include "tests/ptx/ptx.h"

namespace ptx {
bool device_memory(uint64_t at, uint64_t *low, uint64_t *high)
{
    return emu::piece_around((const void *)(uintptr_t)at, low, high);
}

namespace {
std::string contents(const std::string &path)
{
    std::string text;
    FILE *file = fopen(path.c_str(), "rb");
    char buffer[1 << 16];
    for (size_t n; file && (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
        text.append(buffer, n);
    if (file)
        fclose(file);
    return text;
}

/* ---- names ---- */
struct Name { std::string symbol, file; };   /* file: its source, "" if unknown */
typedef std::map<uint64_t, Name> Names;

void read_symbols(const std::string &elf, const Elf64_Shdr &table, const Elf64_Shdr &strings, Names &names)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)(elf.data() + table.sh_offset);
    const char *text = elf.data() + strings.sh_offset;
    std::string file;
    for (size_t i = 0; i < table.sh_size / sizeof *symbols; i++) {
        const Elf64_Sym &s = symbols[i];
        if (ELF64_ST_TYPE(s.st_info) == STT_FILE)
            file = text + s.st_name;
        else if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx != SHN_UNDEF)
            names[s.st_value] = Name{ text + s.st_name, file };
    }
}
Names names_in(const std::string &path)
{
    const std::string elf = contents(path);
    Names names;
    if (elf.size() < sizeof(Elf64_Ehdr) || elf.compare(0, SELFMAG, ELFMAG))
        fail("%s is not an ELF file", path.c_str());
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)elf.data();
    const Elf64_Shdr *section = (const Elf64_Shdr *)(elf.data() + head->e_shoff);
    for (unsigned i = 0; i < head->e_shnum; i++)
        if (section[i].sh_type == SHT_SYMTAB)
            read_symbols(elf, section[i], section[section[i].sh_link], names);
    return names;
}
Name name_of(const void *kernel)
{
    static std::map<std::string, Names> &known = *new std::map<std::string, Names>;
    Dl_info about;
    if (!dladdr(kernel, &about) || !about.dli_fname)
        fail("a kernel is in no library");
    auto names = known.find(about.dli_fname);
    if (names == known.end())
        names = known.emplace(about.dli_fname, names_in(about.dli_fname)).first;
    auto name = names->second.find((uint64_t)((const char *)kernel - (const char *)about.dli_fbase));
    if (name == names->second.end())
        fail("a kernel without a symbol in %s", about.dli_fname);
    return name->second;
}

/* ---- texts ---- */
std::vector<std::unique_ptr<Text>> &texts_in(const std::string &folder, int capability)
{
    typedef std::vector<std::unique_ptr<Text>> Texts;
    static std::map<std::string, Texts> &known = *new std::map<std::string, Texts>;
    const std::string pattern = folder + "/*." + std::to_string(capability) + ".ptx";
    Texts &texts = known[pattern];
    glob_t found;
    if (texts.empty() && glob(pattern.c_str(), 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            std::unique_ptr<Text> t(new Text());
            t->path = found.gl_pathv[i];
            t->source = contents(t->path);
            index_text(*t);
            texts.push_back(std::move(t));
        }
        globfree(&found);
    }
    if (texts.empty())
        fail("no file matches %s", pattern.c_str());
    return texts;
}
/* g++ marks names with internal linkage (_ZL). nvcc does not. */
std::string as_nvcc(const std::string &symbol)
{
    return symbol.compare(0, 3, "_ZL") ? symbol : "_Z" + symbol.substr(3);
}
std::string base_of(const std::string &path, const char *end)
{
    size_t slash = path.rfind('/');
    std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    return name.substr(0, name.find(end));
}
Kernel *kernel_of(const char *folder, int capability, const void *address)
{
    const Name name = name_of(address);
    const std::string entry = as_nvcc(name.symbol);
    Text *text = NULL;
    unsigned found = 0;
    for (auto &t : texts_in(folder, capability))
        if (t->entries.count(entry)) {
            bool same_file = base_of(t->path, ".") == base_of(name.file, ".");
            found++;
            if (!text || same_file)
                text = t.get();
        }
    if (!found)
        fail("no PTX for %s", name.symbol.c_str());
    return parse(*text, entry);
}

/* ---- launches ---- */
void check_arguments(const emu::Launch &l, const Kernel &k)
{
    bool same = l.offsets.size() == k.parameters.size() && l.arguments.size() == k.parameter_bytes;
    for (size_t i = 0; same && i < l.offsets.size(); i++)
        same = l.offsets[i] == k.parameters[i].offset;
    if (!same)
        fail("g++ and nvcc disagree about the kernel's parameters: %zu with %zu bytes, %zu with %zu bytes",
             l.offsets.size(), l.arguments.size(), k.parameters.size(), k.parameter_bytes);
}
void log_kernel(const Kernel &k, int capability)
{
    const char *path = getenv("WEFT_EMU_PTX_LOG");
    int file = path && *path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;
    const std::string line =
        std::to_string(capability) + " " + base_of(k.text->path, ".") + " " + k.name + "\n";
    if (file < 0)
        return;
    if (write(file, line.data(), line.size()) < 0)
        perror(path);
    close(file);
}
const char *stored(const std::string &message)
{
    static std::string &kept = *new std::string;
    return (kept = message).c_str();
}
const char *folder()
{
    const char *path = getenv("WEFT_EMU_PTX");
    return path && *path ? path : NULL;
}
Kernel *kernel_for(const emu::Launch &l) { return kernel_of(folder(), emu::model().code, l.kernel); }
} // namespace

const char *refused(const emu::Launch &l)
{
    if (!folder())
        return NULL;
    try {
        Kernel &k = *kernel_for(l);
        unsigned threads = l.threads.x * l.threads.y * l.threads.z;
        if (threads > k.max_threads)
            fail("%u threads per block; expected at most %u", threads, k.max_threads);
        if (l.dynamic + k.shared > (size_t)emu::model().shared || k.shared > emu::SHARED_DEFAULT)
            fail("%zu + %zu bytes of shared memory", k.shared, l.dynamic);
    } catch (const Failure &f) {
        return stored(f.message);
    }
    return NULL;
}

bool interpreted(emu::Launch &l)
{
    if (!folder())
        return false;
    try {
        Kernel &k = *kernel_for(l);
        check_arguments(l, k);
        log_kernel(k, emu::model().code);
        run(Call{ &k, { l.grid.x, l.grid.y, l.grid.z }, { l.threads.x, l.threads.y, l.threads.z }, l.cluster,
                  l.cooperative, l.dynamic, l.arguments.data(), emu::model().capability,
                  emu::setting("WEFT_EMU_ORDER", 0), (unsigned)emu::setting("WEFT_EMU_SEED", 0),
                  emu::setting("WEFT_EMU_ASYNC", 0) != 0, l.wrong, l.lost });
    } catch (const Failure &f) {
        l.failure = stored(f.message);
    }
    return true;
}
} // namespace ptx
