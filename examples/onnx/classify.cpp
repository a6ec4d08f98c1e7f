// classify model.onnx photo.ppm ...: an exported model by the C API of ONNX Runtime.
//
//     c++ -std=c++17 classify.cpp -I INCLUDE -L LIB -lonnxruntime -o classify
//
// Photographs are binary PPM files, which every image tool writes, so that this program needs no
// library of images: replace read_ppm by the decoder of your application.
#include <onnxruntime_c_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

const OrtApi* api = OrtGetApiBase()->GetApi(ORT_API_VERSION);

void check(OrtStatus* status) {
    if (status == nullptr) return;
    std::fprintf(stderr, "ONNX Runtime: %s\n", api->GetErrorMessage(status));
    api->ReleaseStatus(status);
    std::exit(1);
}

struct Image {
    int64_t width = 0;
    int64_t height = 0;
    std::vector<uint8_t> rgb;
};

Image read_ppm(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string magic;
    Image image;
    int largest = 0;
    file >> magic >> image.width >> image.height >> largest;
    file.get();
    const bool is_ppm = file && magic == "P6" && largest == 255;
    if (is_ppm && image.width > 0 && image.height > 0) {
        image.rgb.resize(static_cast<size_t>(image.width * image.height * 3));
        file.read(reinterpret_cast<char*>(image.rgb.data()),
                  static_cast<std::streamsize>(image.rgb.size()));
    }
    if (!is_ppm || image.rgb.empty() || !file) {
        std::fprintf(stderr, "%s is not a binary PPM file of 8 bits\n", path.c_str());
        std::exit(1);
    }
    return image;
}

// The strings of a JSON array of strings: the class names.
std::vector<std::string> read_names(const char* json) {
    std::vector<std::string> names;
    for (const char* at = json; *at != '\0'; ++at) {
        if (*at != '"') continue;
        std::string name;
        for (++at; *at != '"' && *at != '\0'; ++at) {
            // Evergrow escapes quotes and all but ASCII characters; take a library of JSON for
            // those.
            if (*at == '\\' && at[1] != '\0') name += *at++;
            name += *at;
        }
        names.push_back(name);
    }
    return names;
}

template <typename T>
T* data_of(OrtValue* value) {
    void* data = nullptr;
    check(api->GetTensorMutableData(value, &data));
    return static_cast<T*>(data);
}

}  // namespace

int main(int n_arguments, char** arguments) {
    if (n_arguments < 3 || api == nullptr) {
        std::fprintf(stderr, "usage: classify model.onnx photo.ppm ...\n");
        return 2;
    }
    OrtEnv* environment = nullptr;
    OrtSessionOptions* options = nullptr;
    OrtSession* session = nullptr;
    check(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "classify", &environment));
    check(api->CreateSessionOptions(&options));
    check(api->CreateSession(environment, arguments[1], options, &session));

    OrtAllocator* allocator = nullptr;
    OrtModelMetadata* metadata = nullptr;
    char* classes = nullptr;
    check(api->GetAllocatorWithDefaultOptions(&allocator));
    check(api->SessionGetModelMetadata(session, &metadata));
    check(api->ModelMetadataLookupCustomMetadataMap(metadata, allocator, "evergrow.classes",
                                                    &classes));
    const std::vector<std::string> names = read_names(classes == nullptr ? "" : classes);

    OrtMemoryInfo* memory = nullptr;
    check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    for (int k = 2; k < n_arguments; ++k) {
        Image image = read_ppm(arguments[k]);
        const int64_t shape[] = {1, image.height, image.width, 3};
        OrtValue* images = nullptr;
        check(api->CreateTensorWithDataAsOrtValue(memory, image.rgb.data(), image.rgb.size(), shape,
                                                  4, ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, &images));
        const char* inputs[] = {"images"};
        const char* outputs[] = {"label_index", "probabilities", "is_unknown"};
        OrtValue* found[] = {nullptr, nullptr, nullptr};
        check(api->Run(session, nullptr, inputs, &images, 1, outputs, 3, found));
        const auto index = static_cast<size_t>(*data_of<int64_t>(found[0]));
        const float probability = data_of<float>(found[1])[index];
        const bool is_unknown = *data_of<bool>(found[2]);
        const std::string name = index < names.size() ? names[index] : std::to_string(index);
        std::printf("%s\t%s\t%.4f\n", arguments[k], is_unknown ? "unknown" : name.c_str(),
                    probability);
        for (OrtValue* value : found) api->ReleaseValue(value);
        api->ReleaseValue(images);
    }

    api->ReleaseMemoryInfo(memory);
    check(api->AllocatorFree(allocator, classes));
    api->ReleaseModelMetadata(metadata);
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
    api->ReleaseEnv(environment);
    return 0;
}
